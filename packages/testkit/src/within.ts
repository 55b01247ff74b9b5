/** Tells whether a promise ends in time, for rules against hanging. */

/** Waits for the promise, but at most `ms` real milliseconds. Never rejects. */
export const within = (ms: number, ended: Promise<unknown>): Promise<'ended' | 'still running'> => {
  const { promise, resolve } = Promise.withResolvers<'ended' | 'still running'>()
  const timer = setTimeout(() => resolve('still running'), ms)
  const onEnd = () => {
    clearTimeout(timer)
    resolve('ended')
  }
  ended.then(onEnd, onEnd)
  return promise
}
