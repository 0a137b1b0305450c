// A signal that aborts with another one or after a time. Not AbortSignal.any over AbortSignal.timeout:
// in Node.js 20 nothing holds the latter, and a collection takes it away before it has fired.

export function deadline(signal, ms) {
  const either = new AbortController();
  const end = () => {
    clearTimeout(timer);
    either.abort();
  };
  const timer = setTimeout(end, ms);
  if (signal.aborted) end();
  signal.addEventListener('abort', end, { once: true });
  return either.signal;
}
