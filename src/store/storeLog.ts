/** The part of a logger that the store uses; pino's logger is one. */
export interface StoreLog {
  warn(fields: object, message: string): void;
}
