/**
 * The engine of procedures (§2.4, §4.3): starts what an event matches, brings runs on, and takes what people and agents say of
 * them. It keeps nothing that the store does not have, so that a stop at any moment loses nothing and repeats nothing.
 */

import { nearestName } from '@sluice/kit'
import { AppError, type SopEvent, type SopRun, type SopSummary, type Sops } from '@sluice/sdk'
import { STEP_OWNER } from './agent-step.ts'
import { beginRun } from './begin-run.ts'
import { outputProblem } from './check-output.ts'
import type { SopDefinition } from './definition.ts'
import { hasEnded } from './drive.ts'
import { Drives } from './drives.ts'
import type { SopEngineDeps } from './engine-deps.ts'
import { jsonOrText } from './resolve-input.ts'
import { RunBooks } from './run-books.ts'
import { tellMoved } from './tell.ts'
import { triggerText } from './trigger-text.ts'

export interface SopEngine extends Sops {
  /** As `fire`, for one procedure: what the clock sets off is decided trigger by trigger. Nothing comes of a name that is not loaded. */
  fireOne(name: string, event: SopEvent): Promise<void>
  /**
   * Takes up every run that has not ended, and drives runs from now on: before, and in a process that never calls it, what
   * is started or changed is kept for the one that does. Call it once, after the agent has taken up its turns. Resolves to
   * how many runs there are.
   */
  resume(): Promise<number>
  /** Takes up what another process has started or changed. */
  look(): Promise<void>
  /** Drives nothing more; tool calls under way have `timeoutMs` to end, and what they have done is then kept. */
  stop(timeoutMs: number): Promise<void>
}

const PRUNE_EVERY_MS = 3_600_000
/** How long a repeated event is known as one. */
const EVENT_KEYS_KEPT_MS = 72 * 3_600_000
/** Procedures may start one another, and themselves; this is where such a chain ends. */
const DEPTH_MAX = 8
/** In front of a turn's id, where it says who did something. */
const TURN = 'turn:'
/** Runs read at once. */
const PAGE = 100

export function createSopEngine(deps: SopEngineDeps): SopEngine {
  const { store, approvals, library, events, clock, log, config } = deps
  const books = new RunBooks(deps)
  const drives = new Drives(deps, books)
  const stopping = new AbortController()
  let leaveApprovals: (() => void) | undefined

  const start = async (definitions: readonly SopDefinition[], event: SopEvent, also: Parameters<Sops['fire']>[1] = {}) => {
    const nowMs = clock.nowMs()
    const { max_concurrent_total: concurrentTotal } = config()
    const starts = definitions.map((definition) => beginRun(definition, event, { id: deps.newId(), nowMs, concurrentTotal }))
    const dispatches = await store.start(starts, { atMs: nowMs, ...(event.key !== undefined && { key: event.key }), ...also })
    for (const [index, dispatch] of dispatches.entries()) {
      if (dispatch.status === 'skipped') {
        events.emit({ type: 'sop_skipped', sop: dispatch.sop, source: event.source, reason: dispatch.reason })
        continue
      }
      const started = starts[index]
      // Another run's id is the answer an event got that is repeated now.
      if (started?.run.id !== dispatch.runId) continue
      tellMoved(deps, undefined, started.run, started.audit)
      drives.go(started.run)
    }
    return dispatches
  }

  /** Of an event that a step of a run sets off: one more than that of the run. */
  const depthOf = async (by: string): Promise<number> => {
    const runId = by.startsWith(TURN) ? drives.workingFor(by.slice(TURN.length)) : undefined
    return runId === undefined ? 0 : ((await books.read(runId)).event.depth ?? 0) + 1
  }

  /** Every run that has not ended, oldest first. */
  async function* unfinished(): AsyncGenerator<SopRun> {
    for (let after: string | null = null; ; ) {
      const page: readonly SopRun[] = await store.unfinished({ after, limit: PAGE })
      yield* page
      const last = page.at(-1)
      if (!last || page.length < PAGE) return
      after = last.id
    }
  }

  const pruneNowAndThen = async () => {
    while (!stopping.signal.aborted) {
      try {
        await store.prune({ finishedMax: config().max_finished_runs, keysBeforeMs: clock.nowMs() - EVENT_KEYS_KEPT_MS })
      } catch (error) {
        log.warn('ended runs not pruned', { error })
      }
      await clock.sleep(PRUNE_EVERY_MS, stopping.signal)
    }
  }

  return {
    matches: (source, topic) => library.matches(source, topic),
    settled: () => library.settled(),
    topics: (kind) => library.topics(kind),
    onReload: (callback) => library.onReload(callback),
    list() {
      const counts = drives.counts()
      return library.list().map((definition) => summaryOf(definition, counts.get(definition.name) ?? 0))
    },

    async fire(event, also) {
      const matched = library.match(event)
      return matched.length > 0 ? start(matched, event, also) : []
    },

    async fireOne(name, event) {
      const definition = library.get(name)
      if (definition) await start([definition], event)
    },

    async run(name, event) {
      const definition = library.get(name)
      if (!definition) throw unknownSop(library.list(), name)
      const depth = await depthOf(event.by)
      if (depth > DEPTH_MAX)
        throw new AppError('conflict', `"${name}" was not started: ${DEPTH_MAX} runs in a row have each started the next`)
      const [dispatch] = await start([definition], { ...event, source: 'manual', topic: name, ...(depth > 0 && { depth }) })
      if (dispatch?.status === 'started') return dispatch.runId
      throw new AppError('conflict', `"${name}" was not started: ${dispatch?.reason ?? 'nothing came of it'}`)
    },

    runs: (filter) => store.runs(filter),
    get: (runId) => store.get(runId),

    async report(runId, turnId, { status, output }) {
      const { steps, step } = await books.read(runId)
      const problem = status === 'completed' ? await outputProblem(steps[step - 1]?.output, jsonOrText(output)) : undefined
      if (problem !== undefined) throw new AppError('invalid_request', `The output does not fit the schema of the step: ${problem}`)
      return (await books.change(runId, { type: 'report', turnId, status, output })).after
    },

    async approve(runId, by) {
      if (by.startsWith(TURN)) throw new AppError('forbidden', 'A run is approved by a person')
      const run = await books.read(runId)
      if (!run.gate) throw new AppError('conflict', `The run ${runId} does not wait for anybody: it is ${run.status}`)
      await drives.ask(run)
      const { won, approval } = await approvals.decide({ runId, stepId: run.gate.stepId }, { state: 'approved', by })
      await drives.take(approval)
      if (won) return books.read(runId)
      throw new AppError('conflict', `Step ${run.step} of the run ${runId} was ${approval.state} by ${approval.by ?? 'system'} already`)
    },

    async cancel(runId, by, reason) {
      const { after } = await books.change(runId, { type: 'cancel', by, reason })
      drives.end(runId)
      return after
    },

    async resume() {
      drives.start()
      leaveApprovals = approvals.taker('sop', (approval) => drives.take(approval))
      let count = 0
      for await (const run of unfinished()) {
        drives.go(run)
        count++
      }
      // Cancelled while nothing ran: the agent has taken their turns up again.
      for (const { attempt } of await store.runs({ active: false, limit: PAGE })) {
        if (attempt?.turnId) deps.agent.abort(attempt.turnId, STEP_OWNER)
      }
      void pruneNowAndThen()
      return count
    },

    async look() {
      const known = new Set(drives.ids())
      for await (const run of unfinished()) {
        known.delete(run.id)
        if (!drives.knows(run)) drives.go(run)
      }
      for (const id of known) {
        const run = await store.get(id)
        if (!run || hasEnded(run)) drives.end(id)
      }
    },

    async stop(timeoutMs) {
      stopping.abort()
      leaveApprovals?.()
      await drives.stop(timeoutMs)
    },
  }
}

const summaryOf = (definition: SopDefinition, activeRuns: number): SopSummary => {
  const { name, description, version, priority, mode, steps, triggers } = definition
  return { name, description, version, priority, mode, steps: steps.length, triggers: triggers.map(triggerText), activeRuns }
}

function unknownSop(loaded: readonly SopDefinition[], name: string): AppError {
  const near = nearestName(
    name,
    loaded.map((definition) => definition.name),
  )
  return new AppError('not_found', `There is no procedure "${name}"${near === undefined ? '' : `; is it "${near}"?`}`)
}
