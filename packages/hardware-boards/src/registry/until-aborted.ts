/** Work that cannot be stopped, waited for no longer than until `signal` aborts; undefined: it was not done by then. */
export const untilAborted = <Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result | undefined> =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return resolve(undefined)
    const stop = () => resolve(undefined)
    signal.addEventListener('abort', stop, { once: true })
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
