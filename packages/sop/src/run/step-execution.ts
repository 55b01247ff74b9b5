/** One execution of a step: its context, its abort signal and what it currently does. */
import { type Backoff, backoffMs } from '@sluice/kit'
import type { Lease, SopRun, SopStep } from '@sluice/sdk'
import type { RunPorts } from './engine-ports.ts'
import type { RunRepository } from './run-repository.ts'

/** The state of one execution, which its driver shares with the function that carries out the step. */
export class StepExecution {
  readonly #controller = new AbortController()
  /** The turn that carries out the step; null between turns. */
  turnId: string | null = null
  /** True while a tool acts for the step. A stop waits for it. */
  isToolRunning = false

  /** Aborts when the run is cancelled and when the engine stops. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(): void {
    this.#controller.abort()
  }
}

/** The arguments of a function that carries out a step. */
export interface StepContext {
  readonly ports: RunPorts
  readonly runs: RunRepository
  /** The lease of the run; undefined in a process that has the store to itself. */
  readonly lease: Lease | undefined
  readonly run: SopRun
  readonly step: SopStep
  readonly execution: StepExecution
}

const RETRY: Backoff = { firstMs: 500, longestMs: 30_000, fixedShare: 1 }

/** Returns milliseconds to wait after `failures` earlier failures in a row and the present one. */
export const retryDelayMs = (failures: number): number => backoffMs(failures, RETRY)
