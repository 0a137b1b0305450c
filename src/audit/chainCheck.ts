/** Lines of a trail held against the chain, signatures and a checkpoint, one after the other. */
import type { KeyObject } from 'node:crypto';
import { counted } from '../core/counted.js';
import { follows, GENESIS, type Head, hashLine, type Link, readLink } from './chain.js';
import { isSigned, keyId, parseCheckpoint } from './checkpoint.js';
import { type AnyRecord, parseRecord, type TrailLine } from './reading.js';
import { RESERVE_FILE } from './trailFiles.js';

export interface BadRecord {
  readonly file: string;
  /** From 1; 0: the file as a whole. */
  readonly line: number;
  /** The number that the record has or should have. */
  readonly seq?: number;
  readonly why: string;
}

export interface Verdict {
  /**
   * `tampered`: something contradicts a signature or the chain. `incomplete`: nothing does, but not
   * all can be vouched for.
   */
  readonly state: 'sound' | 'tampered' | 'incomplete';
  /** The first record that is not as it was written. */
  readonly firstBad?: BadRecord;
  /** What keeps the trail from being complete, and what is worth knowing of a sound one. */
  readonly notes: readonly string[];
  readonly records: number;
  readonly firstSeq?: number;
  readonly lastSeq?: number;
  /** Through here, a signature vouches for every byte. Absent: none does. */
  readonly signedThrough?: number;
  /** Of the key, SHA-256 in hex. */
  readonly key?: string;
}

/** What lines are held against. */
export interface Evidence {
  readonly publicKey?: KeyObject;
  /** A checkpoint, the whole line. */
  readonly head?: string;
  /** What the verdict calls it. */
  readonly headName: string;
}

interface Place {
  readonly file: string;
  readonly line: number;
  readonly seq: number;
}

interface Doubt {
  readonly before: BadRecord;
  readonly place: BadRecord;
  /** Of the line as it would be if only its reference had been changed. */
  readonly mendedHash: string;
  /** A signature says that it was so. */
  readonly isMended?: true;
}

/** The first of the two that was changed. `nextPrev`: what the next line was written upon. */
function judge({ before, place, mendedHash, isMended }: Doubt, nextPrev: string | undefined) {
  return isMended || nextPrev === mendedHash ? place : before;
}

export class ChainCheck {
  readonly #notes: string[] = [];
  #incomplete = false;
  #bad: BadRecord | undefined;
  #head: Head = GENESIS;
  /** Where `#head` stands. */
  #at: Place | undefined;
  #first: number | undefined;
  #records = 0;
  #signedThrough: number | undefined;
  #sealed = false;
  #keptFound = false;
  readonly #keptSeq: number | undefined;
  /** A file ended in the middle of this line. */
  #cut: Place | undefined;
  /**
   * A line that does not follow from the one before it. Either was changed, or both: the next line
   * tells, by which text of this one it was written upon.
   */
  #doubt: Doubt | undefined;

  constructor(
    private readonly publicKey: KeyObject | undefined,
    private readonly kept: string | undefined,
    private readonly keptName: string,
  ) {
    if (publicKey === undefined) this.#lack('there is no public key to check signatures with');
    if (kept === undefined) {
      this.#lack('there is no HEAD: what was cut off at the end cannot be told');
      return;
    }
    const checkpoint = parseCheckpoint(kept);
    this.#keptSeq = checkpoint?.seq;
    if (checkpoint === undefined || (publicKey && !isSigned(kept, publicKey))) {
      this.#bad = {
        file: keptName,
        line: 1,
        ...(checkpoint && { seq: checkpoint.seq }),
        why: this.#whyUnsigned(checkpoint?.key),
      };
    }
  }

  /** False: it is enough. */
  take(line: TrailLine): boolean {
    if (this.#bad) return false;
    if (this.#cut && line.file !== RESERVE_FILE) {
      this.#bad = { ...this.#cut, why: 'ends in the middle, and others follow' };
      return false;
    }
    if (!line.complete) {
      this.#lack(`${line.file} ends in the middle of line ${line.line}`);
      this.#cut = this.#next(line);
      return true;
    }
    const record = parseRecord(line.bytes);
    const link = record && readLink(line.bytes);
    if (this.#doubt) {
      this.#bad = judge(this.#doubt, link?.prev);
      return false;
    }
    if (record === undefined || link === undefined) {
      this.#bad = { ...this.#next(line), why: 'is no record of a trail' };
      return false;
    }
    if (this.#records === 0 && !this.#begin(line, link, record)) return false;
    if (!follows(link, this.#head)) return this.#mismatch(line, link);
    return this.#accept(line, link, record);
  }

  end(): Verdict {
    const last = this.#at;
    if (!this.#bad && this.#doubt) this.#bad = judge(this.#doubt, undefined);
    if (!this.#bad && this.#keptSeq !== undefined && !this.#keptFound) this.#missing(this.#keptSeq);
    if (this.#records === 0) this.#lack('there is no record');
    if (this.#records > 0 && this.#signedThrough === undefined) {
      this.#lack('no checkpoint vouches for any of it');
    }
    const unsigned = (last?.seq ?? 0) - (this.#signedThrough ?? 0);
    if (this.#signedThrough !== undefined && unsigned > 0 && !this.#bad) {
      this.#notes.push(
        `after the last checkpoint: ${counted(unsigned, 'record')}, chained, not yet signed`,
      );
    }
    return {
      state: this.#bad ? 'tampered' : this.#incomplete ? 'incomplete' : 'sound',
      ...(this.#bad && { firstBad: this.#bad }),
      notes: this.#notes,
      records: this.#records,
      ...(this.#first !== undefined && { firstSeq: this.#first }),
      ...(last && { lastSeq: last.seq }),
      ...(this.#signedThrough !== undefined && { signedThrough: this.#signedThrough }),
      ...(this.publicKey && { key: keyId(this.publicKey) }),
    };
  }

  /** Whole files may have been removed when their time was over: the next begins with what it follows. */
  #begin(line: TrailLine, { seq, prev }: Link, { record, after }: AnyRecord): boolean {
    this.#first = seq;
    if (seq === 1) return true;
    const begins =
      prev !== GENESIS.hash &&
      (record === 'file' || (record === 'start' && followsDirectly(after, seq)));
    if (!begins) {
      this.#bad = {
        file: line.file,
        line: 1,
        seq: prev === GENESIS.hash ? 1 : seq - 1,
        why: 'no file of a trail begins so',
      };
      return false;
    }
    this.#head = { seq: seq - 1, hash: prev };
    this.#lack(`the trail begins with record ${seq}: the files before are not here`);
    return true;
  }

  #mismatch(line: TrailLine, link: Link): boolean {
    const place = { file: line.file, line: line.line, seq: link.seq };
    const expected = this.#head.seq + 1;
    if (link.seq > expected) {
      const gone = link.seq - expected;
      this.#bad = { ...place, seq: expected, why: `missing: ${gone} record(s) before this line` };
      return false;
    }
    if (this.#at === undefined || link.seq < expected) {
      this.#bad = { ...place, why: `record ${expected} should stand here` };
      return false;
    }
    const text = line.bytes.toString();
    // As it would be if no more than its reference to the line before had been changed.
    const mended = text.replace(link.prev, this.#head.hash);
    const isMended = link.record === 'checkpoint' && this.#isSigned(mended);
    this.#doubt = {
      before: { ...this.#at, why: 'is not what the line after it was written upon' },
      place: { ...place, why: 'does not follow from the line before it' },
      mendedHash: hashLine(mended),
      ...(isMended && { isMended }),
    };
    return true;
  }

  #isSigned(text: string): boolean {
    return this.publicKey !== undefined && isSigned(text, this.publicKey);
  }

  #accept(line: TrailLine, link: Link, record: AnyRecord): boolean {
    const { file, line: number, bytes } = line;
    const place = { file, line: number, seq: link.seq };
    if (this.#sealed && link.record !== 'start' && link.record !== 'file') {
      this.#bad = { ...place, why: 'was added after the trail had been sealed' };
      return false;
    }
    this.#sealed = false;
    if (link.record === 'checkpoint') this.#checkpoint(bytes.toString(), place);
    if (link.record === 'torn') this.#torn(record, place);
    if (link.seq === this.#keptSeq && !this.#bad) {
      this.#keptFound = bytes.toString().trimEnd() === this.kept?.trimEnd();
      if (!this.#keptFound) this.#bad = { ...place, why: `is not the one in ${this.keptName}` };
    }
    if (this.#bad) return false;
    this.#head = { seq: link.seq, hash: hashLine(bytes) };
    this.#at = place;
    this.#records += 1;
    return true;
  }

  #checkpoint(text: string, place: Place): void {
    if (this.publicKey === undefined) return;
    const checkpoint = parseCheckpoint(text);
    if (checkpoint === undefined || !isSigned(text, this.publicKey)) {
      this.#bad = { ...place, why: this.#whyUnsigned(checkpoint?.key) };
      return;
    }
    this.#signedThrough = checkpoint.seq;
    this.#sealed = checkpoint.final;
  }

  /** What no crash makes was a change to lines that nobody had signed yet. */
  #torn({ file, bytes, reason }: AnyRecord, place: Place): void {
    if (reason === 'unsound') {
      const why = `sound lines that did not follow were found at a start, and moved to ${file}`;
      this.#bad = { ...place, why };
    } else {
      this.#notes.push(
        `moved to ${file}: ${counted(Number(bytes), 'byte')} that a crash had left unfinished`,
      );
    }
  }

  #missing(seq: number): void {
    const { file = '', line = 0, seq: last = 0 } = this.#at ?? {};
    const why = `missing: ${this.keptName} vouches for records through ${seq}`;
    this.#bad = { file, line: line + 1, seq: last + 1, why };
  }

  #whyUnsigned(key: string | undefined): string {
    const isOther = key !== undefined && this.publicKey && key !== keyId(this.publicKey);
    return isOther ? `is signed by another key, ${key}` : 'is not signed by the key of this trail';
  }

  #next({ file, line }: TrailLine): Place {
    return { file, line, seq: this.#head.seq + 1 };
  }

  #lack(note: string): void {
    this.#incomplete = true;
    this.#notes.push(note);
  }
}

/** A start that is the first line of its file says which record it comes after. */
function followsDirectly(after: unknown, seq: number): boolean {
  return typeof after === 'object' && after !== null && 'seq' in after && after.seq === seq - 1;
}
