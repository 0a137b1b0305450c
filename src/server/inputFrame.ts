/** The frame of Attach that comes with each key, read where it lies. */
import { varintAt, varintSize } from '../core/varint.js';
import type { AttachRequest } from '../gen/public/grantty/v1/terminal_service_pb.js';

/** Keys of fields: number << 3 | wire type (protobuf encoding, "Message Structure"). */
const INPUT_KEY = (2 << 3) | 2;
const DATA_KEY = (1 << 3) | 2;

/**
 * An `AttachRequest` with input and nothing else, as every encoder writes it; its data is a view.
 * Undefined: something else, which the generated decoder has to read. A test holds it against that.
 */
export function readInputFrame(bytes: Uint8Array): AttachRequest | undefined {
  const input = behind(bytes, 0, INPUT_KEY);
  const data = behind(bytes, input, DATA_KEY);
  if (data === undefined) return undefined;
  return {
    $typeName: 'grantty.v1.AttachRequest',
    frame: {
      case: 'input',
      value: { $typeName: 'grantty.v1.AttachInput', data: bytes.subarray(data) },
    },
  };
}

/** Where the member `key` at `start` begins, when it reaches to the end of `bytes`. */
function behind(bytes: Uint8Array, start: number | undefined, key: number): number | undefined {
  if (start === undefined || bytes[start] !== key) return undefined;
  const length = varintAt(bytes, start + 1);
  const at = start + 1 + varintSize(length);
  return at + length === bytes.length ? at : undefined;
}
