/** All that the safety process loads once it knows that it is one. */
import { constants, setPriority } from 'node:os'
import type { Clock } from '@sluice/sdk'
import { limitsOf } from '../robot-config.ts'
import { Kernel } from './kernel.ts'
import type { FromKernel, KernelInit } from './messages.ts'
import { openBody } from './open-body.ts'

/** Of the whole machine, so that times of several processes compare. */
const machineClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      signal?.addEventListener('abort', end)
    }),
}

export const startKernel = (init: KernelInit, tell: (message: FromKernel) => void): Promise<Kernel> =>
  Kernel.start({
    clock: machineClock,
    limits: limitsOf(init.config),
    latched: init.latched,
    open: (hear) => openBody(init, machineClock, hear),
    tell,
  })

/** Before the other processes of the machine, where it is allowed to. */
export function goFirst(): void {
  try {
    setPriority(constants.priority.PRIORITY_HIGHEST)
  } catch {}
}
