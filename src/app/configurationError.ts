/** What is wrong with a configuration, in sentences that each name a key. */

/** One thing that is wrong. */
export interface ConfigurationProblem {
  /** Where: `tls.cert`. Absent: the file as a whole, or a flag. */
  readonly key?: string;
  /** A whole sentence without its full stop; it names the key. */
  readonly text: string;
  /** What to do, where that does not follow from the text. */
  readonly remedy?: string;
}

/** The configuration is wrong; the message names the file and every key that is. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly problems: readonly ConfigurationProblem[];

  constructor(message: string, problems: readonly ConfigurationProblem[] = [{ text: message }]) {
    super(message);
    this.problems = problems;
  }
}

/** One line for one problem, else a line for each. */
export function configurationError(
  file: string,
  problems: readonly ConfigurationProblem[],
): ConfigurationError {
  const [first, ...more] = problems.map(sentenceOf);
  const message =
    more.length === 0
      ? `${file}: ${first}`
      : `${file} is not valid:\n${[first, ...more].map((text) => `  ${text}`).join('\n')}`;
  return new ConfigurationError(message, problems);
}

function sentenceOf({ text, remedy }: ConfigurationProblem): string {
  return remedy === undefined ? text : `${text}; ${remedy}`;
}

/** About a key that does not fit the host, or another key. */
export function problemOf(key: string, what: string, remedy?: string): ConfigurationError {
  const problem = { key, text: `${key}: ${what}`, ...(remedy !== undefined && { remedy }) };
  return new ConfigurationError(sentenceOf(problem), [problem]);
}

/** What several checks found, so that all of it is told at once. */
export class ProblemList {
  readonly #problems: ConfigurationProblem[] = [];

  get all(): readonly ConfigurationProblem[] {
    return this.#problems;
  }

  add({ problems }: ConfigurationError): void {
    this.#problems.push(...problems);
  }

  /** The result of a check; undefined when it found something wrong. */
  async of<T>(check: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await check();
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      this.add(error);
      return undefined;
    }
  }

  /** @throws ConfigurationError for what was found; `where` is the file that it is about */
  throwIfAny(where: string): void {
    if (this.#problems.length > 0) throw configurationError(where, this.#problems);
  }
}
