/** The signals that a caller may send, by name, with their Linux numbers (signal(7)). */

export const signalNumbers = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGUSR2: 12,
  SIGALRM: 14,
  SIGTERM: 15,
  SIGCONT: 18,
  SIGSTOP: 19,
  SIGTSTP: 20,
  SIGTTIN: 21,
  SIGTTOU: 22,
  SIGWINCH: 28,
} as const;

export type SignalName = keyof typeof signalNumbers;

export function isSignalName(text: string): text is SignalName {
  return Object.hasOwn(signalNumbers, text);
}

/**
 * Input bytes that the default line discipline turns into signals: VINTR (^C), VQUIT (^\), VSUSP
 * (^Z). See termios(3).
 */
const signalBytes: readonly (readonly [byte: number, raises: SignalName])[] = [
  [0x03, 'SIGINT'],
  [0x1c, 'SIGQUIT'],
  [0x1a, 'SIGTSTP'],
];

const NO_SIGNALS: readonly SignalName[] = [];

export function hasSignalByte(data: Uint8Array): boolean {
  return signalBytes.some(([byte]) => data.includes(byte));
}

/** The signals that this input would raise under the default line discipline, each once. */
export function signalsRaisedBy(data: Uint8Array): readonly SignalName[] {
  if (!hasSignalByte(data)) return NO_SIGNALS;
  return signalBytes.filter(([byte]) => data.includes(byte)).map(([, raises]) => raises);
}
