/** Why an instance ended, where neither its program nor a caller had the last word. */

/**
 * - `supervisor-lost`: its end was not seen, so there is no exit code
 * - `supervisor-stopped`: its supervisor was told to end
 * - `idle-limit`, `lifetime-limit`: it was left alone, or lived, for as long as the configuration allows
 */
export type ExitReason = 'supervisor-lost' | 'supervisor-stopped' | 'idle-limit' | 'lifetime-limit';
