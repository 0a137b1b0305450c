/** What can be revoked: a token, the tokens of a subject, the tokens that a key has signed. */

/** In each case with all that descends from it. */
export type Revoked =
  | { readonly kind: 'token'; readonly issuer: string; readonly jti: string }
  | {
      readonly kind: 'subject';
      readonly issuer: string;
      readonly subject: string;
      /** Seconds since the Unix epoch: tokens issued (`iat`) before it. */
      readonly issuedBefore: number;
    }
  | { readonly kind: 'key'; readonly issuer: string; readonly keyId: string };
