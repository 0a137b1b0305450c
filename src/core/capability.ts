/** The seven capabilities. None implies another, and there is no wildcard. */

export const capabilities = [
  'terminal.create',
  'terminal.read',
  'terminal.write',
  'terminal.resize',
  'terminal.signal',
  'terminal.stop',
  'terminal.kill',
] as const;

export type Capability = (typeof capabilities)[number];

export function isCapability(text: string): text is Capability {
  return (capabilities as readonly string[]).includes(text);
}
