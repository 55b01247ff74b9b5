/** Whether something ends in time, for rules on what must not hang. */

/** In real time, all of which only what does not end uses up. */
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
