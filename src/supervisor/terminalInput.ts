/** Input to one terminal: its attachments, and frames under leases to the instance that runs. */
import { fieldInvalid, type GranttyError } from '../core/errors.js';
import type {
  AttachmentInfo,
  AttachmentSpec,
  InputChannel,
  Lease,
  WriteResult,
  WriteSpec,
} from './api.js';
import { type Attachment, Attachments } from './attachments.js';
import { type Instance, terminalExited } from './instance.js';
import type { Leases } from './leases.js';

export class TerminalInput {
  readonly #attachments = new Attachments();
  /** Over all instances and ways in. */
  #takenBytes = 0;

  constructor(
    private readonly leases: Leases,
    private readonly now: () => number,
    private readonly instance: () => Instance | undefined,
  ) {}

  /** Bytes that the line discipline has taken since this process began. */
  get takenBytes(): number {
    return this.#takenBytes;
  }

  attachments(): AttachmentInfo[] {
    return this.#attachments.list();
  }

  attach(spec: AttachmentSpec): InputChannel {
    const attachment = this.#attachments.open(spec, this.now());
    const opening = attachment.opening;
    // What an older stream of it has queued must not be taken after `taken` was told.
    this.dropRefused();
    return {
      attachmentId: attachment.id,
      resumed: opening > 1,
      get taken() {
        return attachment.taken;
      },
      send: (data, lease) => this.#send(attachment, opening, data, lease),
      [Symbol.asyncDispose]: async () => {
        this.#attachments.close(attachment, opening);
        this.dropRefused();
      },
    };
  }

  async #send(
    attachment: Attachment,
    opening: number,
    data: Uint8Array,
    lease: Lease,
  ): Promise<number> {
    if (attachment.opening !== opening) throw streamEnded();
    attachment.wrote = true;
    await this.#running().send(
      data,
      () => (attachment.opening === opening ? this.leases.refusal(lease) : streamEnded()),
      (bytes) => {
        attachment.taken += bytes;
        this.#takenBytes += bytes;
      },
    );
    return attachment.taken;
  }

  async write({ data, lease }: WriteSpec): Promise<WriteResult> {
    const instance = this.#running();
    const lastSeq = instance.cutOutput();
    await instance.send(
      data,
      () => this.leases.refusal(lease),
      (bytes) => {
        this.#takenBytes += bytes;
      },
    );
    return { lastSeq };
  }

  /** Rejects queued input under leases that do not hold any more. */
  dropRefused(): void {
    this.instance()?.dropRefused();
  }

  #running(): Instance {
    const instance = this.instance();
    if (!instance) throw terminalExited();
    return instance;
  }
}

function streamEnded(): GranttyError {
  return fieldInvalid(
    'attachment_id',
    'this stream of the attachment has ended, or another one has resumed it',
  );
}
