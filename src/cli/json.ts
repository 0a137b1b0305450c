/** Messages for programs. */
import { type DescMessage, type MessageShape, toJson } from '@bufbuild/protobuf';
import { writeLine } from './output.js';

/** One message in the protobuf JSON mapping, on a line of its own. */
export async function writeJson<D extends DescMessage>(
  schema: D,
  message: MessageShape<D>,
): Promise<void> {
  await writeLine(JSON.stringify(toJson(schema, message)));
}
