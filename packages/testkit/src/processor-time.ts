/** Time that other programs on the machine do not lengthen. */

/** Returns the processor time that this thread has used so far, in milliseconds. */
export function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
