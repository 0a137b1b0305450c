/** Numbers of things in sentences. */

/** `1 token`, `2 tokens`; `many` where that is not the word with an s. */
export function counted(count: number | bigint, one: string, many = `${one}s`): string {
  return `${count} ${Number(count) === 1 ? one : many}`;
}
