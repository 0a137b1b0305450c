/** The attachments of one terminal: who is there, and how much of their input was taken. */
import { randomUUID } from 'node:crypto';
import { GranttyError } from '../core/errors.js';
import { MAX_ATTACHMENTS_PER_PRINCIPAL, MAX_ATTACHMENTS_PER_TERMINAL } from '../core/limits.js';
import type { AttachmentInfo, AttachmentSpec } from './api.js';

/** Broken attachments kept so that they can be resumed; above it the oldest is forgotten. */
const MAX_DETACHED = 64;

export class Attachment {
  readonly id = randomUUID();
  readonly since: number;
  /** Input bytes that the line discipline has taken, over all streams of this attachment. */
  taken = 0;
  /** Which opening of it is the present one, raised at its end too: input of any other is refused. */
  opening = 0;
  wrote = false;

  readonly spec: Omit<AttachmentSpec, 'attachmentId'>;

  constructor({ attachmentId: _, ...spec }: AttachmentSpec, now: number) {
    this.spec = spec;
    this.since = now;
  }

  info(): AttachmentInfo {
    const { kind, subject, actor } = this.spec;
    return {
      attachmentId: this.id,
      kind,
      subject,
      ...(actor !== undefined && { actor }),
      since: this.since,
      mode: this.wrote ? 'read-write' : 'read',
    };
  }
}

export class Attachments {
  readonly #open = new Map<string, Attachment>();
  readonly #detached = new Map<string, Attachment>();

  /** Resumes the attachment that the id names, if this principal has it; else makes a new one. @throws QUOTA_STREAMS */
  open(spec: AttachmentSpec, now: number): Attachment {
    const attachment = this.#known(spec) ?? new Attachment(spec, now);
    if (!this.#open.has(attachment.id)) this.#checkRoom(spec.principal);
    this.#detached.delete(attachment.id);
    this.#open.set(attachment.id, attachment);
    attachment.opening += 1;
    return attachment;
  }

  /** Ends one opening; the attachment stays resumable. Nothing happens when it was resumed since. */
  close(attachment: Attachment, opening: number): void {
    if (attachment.opening !== opening || !this.#open.delete(attachment.id)) return;
    attachment.opening += 1;
    this.#detached.set(attachment.id, attachment);
    const oldest = this.#detached.keys().next();
    if (this.#detached.size > MAX_DETACHED && !oldest.done) this.#detached.delete(oldest.value);
  }

  list(): AttachmentInfo[] {
    return [...this.#open.values()].map((attachment) => attachment.info());
  }

  #known({ attachmentId, principal }: AttachmentSpec): Attachment | undefined {
    if (attachmentId === undefined) return undefined;
    const attachment = this.#open.get(attachmentId) ?? this.#detached.get(attachmentId);
    return attachment?.spec.principal === principal ? attachment : undefined;
  }

  #checkRoom(principal: string): void {
    if (this.#open.size >= MAX_ATTACHMENTS_PER_TERMINAL) {
      throw tooMany(`the terminal has ${MAX_ATTACHMENTS_PER_TERMINAL} attachments`);
    }
    let own = 0;
    for (const attachment of this.#open.values()) {
      if (attachment.spec.principal === principal) own += 1;
    }
    if (own >= MAX_ATTACHMENTS_PER_PRINCIPAL) {
      throw tooMany(`you have ${MAX_ATTACHMENTS_PER_PRINCIPAL} attachments to the terminal`);
    }
  }
}

function tooMany(what: string): GranttyError {
  return new GranttyError('QUOTA_STREAMS', `${what}; close one first`);
}
