/**
 * The procedure engine: starts the procedures that match an event, carries out their runs, and applies the decisions of people
 * and the reports of the agent. All state is in the store, so a crash at any moment loses nothing and repeats nothing. See
 * docs/contract.md#procedures.
 */

import { nearestName, olderThanMs } from '@sluice/kit'
import {
  AppError,
  type FireOptions,
  SOP_REPLAYABLE,
  type SopDispatch,
  type SopEvent,
  type SopRun,
  type SopSummary,
  type Sops,
  type StoreChange,
  type TriggerKind,
  type TriggerWebhook,
} from '@sluice/sdk'
import { openTo, type SopDefinition, triggerText } from '../definition/definition.ts'
import { jsonOrText } from '../definition/json-text.ts'
import { outputProblem } from '../definition/output-schema.ts'
import { ActiveRuns } from './active-runs.ts'
import { STEP_OWNER } from './agent-step.ts'
import { beginRun } from './begin-run.ts'
import type { EnginePorts, RunHome, RunPorts } from './engine-ports.ts'
import { reportProgress } from './run-progress.ts'
import { hasEnded, RunRepository } from './run-repository.ts'
import { WaitingRuns } from './waiting-runs.ts'

const PRUNE_EVERY_MS = 3_600_000
/** Event keys are remembered this long, so that a repeated event starts nothing. */
const EVENT_KEYS_KEPT_MS = 72 * 3_600_000
/** Procedures may start one another and themselves. A longer chain of starts is refused. */
const DEPTH_MAX = 8
/** The prefix of an actor that is an agent turn: `turn:<id>`. */
const TURN_ACTOR = 'turn:'
const PAGE_SIZE = 100

/** Carries out nothing until `resume`. */
export class SopEngine implements Sops {
  readonly #ports: RunPorts
  readonly #runs: RunRepository
  readonly #activeRuns: ActiveRuns
  readonly #waitingRuns: WaitingRuns
  #unsubscribe: (() => void) | undefined

  constructor(given: EnginePorts) {
    const ports: RunPorts = { ...given, changed: () => this.#waitingRuns.wake() }
    this.#ports = ports
    this.#runs = new RunRepository(ports)
    this.#activeRuns = new ActiveRuns(ports, this.#runs)
    this.#waitingRuns = new WaitingRuns(ports, this.#runs, (run) => this.#activeRuns.wake(run))
  }

  /**
   * Carries out the runs of these shards from now on, beginning with every unfinished one, until the lease is lost. Runs of other
   * shards stay in the store for the process that owns them. Waiting runs of all shards begin here, too. Call it once for each lease, after the
   * agent has recovered the turns of the shards. Resolves to the number of unfinished runs.
   */
  async resume(home: RunHome): Promise<number> {
    this.#activeRuns.take(home)
    this.#unsubscribe ??= this.#subscribe()
    let count = 0
    for await (const run of unfinishedRuns(home)) {
      this.#activeRuns.wake(run)
      count++
    }
    await this.#abortTurnsOfEndedRuns()
    this.#waitingRuns.open()
    return count
  }

  #subscribe(): () => void {
    const { approvals, library } = this.#ports
    const decisions = approvals.onDecision('sop', (approval) => this.#activeRuns.applyDecision(approval))
    const reloads = library.onReload(() => this.#waitingRuns.wake())
    return () => {
      decisions()
      reloads()
    }
  }

  /** Begins no more steps of the runs of these shards. Resolves once the steps under way have ended. */
  leave(home: RunHome): Promise<void> {
    return this.#activeRuns.leave(home)
  }

  /** Picks up the runs that another process has started or changed. */
  async refresh(change: StoreChange = { shards: null }): Promise<void> {
    const concerned = this.#activeRuns.homes.concernedBy(change)
    if (concerned.length === 0) return
    const goneIds = new Set(this.#activeRuns.ids())
    const look = async (home: RunHome): Promise<void> => {
      for await (const run of unfinishedRuns(home)) {
        goneIds.delete(run.id)
        if (!this.#activeRuns.isUpToDate(run)) this.#activeRuns.wake(run)
      }
    }
    // All at once, so that the store can read the runs of all shards together.
    await Promise.all(concerned.map(look))
    for (const id of goneIds) {
      const run = await this.#ports.store.get(id)
      if (!run || hasEnded(run)) this.#activeRuns.release(id)
    }
    this.#waitingRuns.wake()
  }

  /** Stops carrying out runs. Tool calls in progress have `timeoutMs` to end, and their results are stored. */
  async stop(timeoutMs: number): Promise<void> {
    this.#unsubscribe?.()
    await this.#waitingRuns.stop()
    await this.#activeRuns.stop(timeoutMs)
  }

  matches(source: TriggerKind, topic: string): boolean {
    return this.#ports.library.matches(source, topic)
  }

  webhooks(path: string): readonly TriggerWebhook[] {
    const { secrets = {} } = this.#ports.config()
    return this.#ports.library.webhooks(path).map((webhook) => {
      const names = webhook.auth?.secrets.filter((name) => Object.hasOwn(secrets, name)) ?? []
      return { ...webhook, secrets: names.map((name) => secrets[name]).filter((secret) => secret !== undefined) }
    })
  }

  loaded(): Promise<void> {
    return this.#ports.library.loaded()
  }

  topics(kind: TriggerKind): readonly string[] {
    return this.#ports.library.topics(kind)
  }

  onReload(callback: () => void): () => void {
    return this.#ports.library.onReload(callback)
  }

  list(): readonly SopSummary[] {
    const counts = this.#activeRuns.countsBySop()
    return this.#ports.library.list().map((definition) => summaryOf(definition, counts.get(definition.name) ?? 0))
  }

  async fire(event: SopEvent, { verified, ...also }: FireOptions = {}): Promise<readonly SopDispatch[]> {
    const matched = this.#ports.library.match(event, verified)
    return matched.length > 0 ? this.#start(matched, event, also) : []
  }

  /** Like `fire`, for one procedure: cron decides trigger by trigger. Does nothing when no procedure has this name. */
  async fireOne(name: string, event: SopEvent): Promise<void> {
    const definition = this.#ports.library.get(name)
    if (definition) await this.#start([definition], event)
  }

  async run(name: string, { starter, standing, session, ...given }: Omit<SopEvent, 'source' | 'topic'>): Promise<string> {
    const { library } = this.#ports
    // A procedure that was just written is loaded once its change is noticed.
    if (!library.get(name)) await library.loaded()
    const definition = library.get(name)
    if (!definition) throw unknownSop(library.list(), name)
    const parent = await this.#parentOf(given.by)
    const depth = parent ? (parent.event.depth ?? 0) + 1 : 0
    if (depth > DEPTH_MAX)
      throw new AppError('conflict', `"${name}" was not started: ${DEPTH_MAX} runs in a row have each started the next`)
    // A run that a step of another run starts is started by the person who started that one, and in the same conversation.
    const who = parent ? parent.event : { starter, standing, session }
    const event: SopEvent = {
      ...given,
      ...(who.starter !== undefined && { starter: who.starter }),
      ...(who.standing !== undefined && { standing: who.standing }),
      ...(who.session !== undefined && { session: who.session }),
      source: 'manual',
      topic: name,
      ...(depth > 0 && { depth }),
    }
    return this.#startOne(definition, event)
  }

  async replay(runId: string, by: string): Promise<string> {
    const run = await this.#runs.read(runId)
    if (!SOP_REPLAYABLE.includes(run.status))
      throw new AppError('conflict', `Only a failed, cancelled or expired run is replayed, and the run ${runId} is ${run.status}`)
    const { library, clock } = this.#ports
    await library.loaded()
    const definition = library.get(run.sop)
    if (!definition) throw unknownSop(library.list(), run.sop)
    // A person wants the run, so no cooldown skips it; and a second replay gets the run of the first.
    const event: SopEvent = { ...run.event, by, atMs: clock.nowMs(), key: `replay ${runId}` }
    return this.#startOne({ ...definition, cooldownSecs: 0 }, event)
  }

  runs(filter: Parameters<Sops['runs']>[0]): Promise<readonly SopRun[]> {
    return this.#ports.store.runs(filter)
  }

  get(runId: string): Promise<SopRun | undefined> {
    return this.#ports.store.get(runId)
  }

  async report(runId: string, turnId: string, { status, output }: Parameters<Sops['report']>[2]): Promise<SopRun> {
    const { steps, step } = await this.#runs.read(runId)
    const problem = status === 'completed' ? await outputProblem(steps[step - 1]?.output, jsonOrText(output)) : undefined
    if (problem !== undefined) throw new AppError('invalid_request', `The output does not fit the schema of the step: ${problem}`)
    return this.#runs.apply(runId, { type: 'report', turnId, status, output })
  }

  async approve(runId: string, by: string): Promise<SopRun> {
    if (by.startsWith(TURN_ACTOR)) throw new AppError('forbidden', 'Only a person can approve a run')
    const run = await this.#runs.read(runId)
    if (!run.gate) throw new AppError('conflict', `The run ${runId} does not wait for an approval: it is ${run.status}`)
    await this.#activeRuns.openApproval(run)
    const { won, approval } = await this.#ports.approvals.decide(
      { runId, stepId: run.gate.stepId },
      { state: 'approved', by, who: { standing: 'operator', isAsked: false } },
    )
    await this.#activeRuns.applyDecision(approval)
    if (won) return this.#runs.read(runId)
    throw new AppError('conflict', `Step ${run.step} of the run ${runId} was already ${approval.state} by ${approval.by ?? 'system'}`)
  }

  async cancel(runId: string, by: string, reason: string): Promise<SopRun> {
    const run = await this.#runs.apply(runId, { type: 'cancel', by, reason })
    this.#activeRuns.release(runId)
    return run
  }

  /** Resolves to the id of the run that starts or waits. */
  async #startOne(definition: SopDefinition, event: SopEvent): Promise<string> {
    const { name, maxConcurrent } = definition
    if (maxConcurrent === 0) throw new AppError('conflict', `"${name}" was not started: it is switched off (max_concurrent = 0)`)
    const [dispatch] = await this.#start([definition], event, { repeats: true })
    if (dispatch && dispatch.status !== 'skipped') return dispatch.runId
    throw new AppError('conflict', `"${name}" was not started: ${dispatch?.reason ?? 'the store returned no result'}`)
  }

  async #start(
    definitions: readonly SopDefinition[],
    event: SopEvent,
    also: Omit<FireOptions, 'verified'> = {},
  ): Promise<readonly SopDispatch[]> {
    const { store, events, clock, config, log, newId } = this.#ports
    const nowMs = clock.nowMs()
    const { max_concurrent_total: concurrentTotal } = config()
    const starts = definitions.map((definition) => beginRun(definition, event, { id: newId(), nowMs, concurrentTotal }))
    const dispatches = await store.start(starts, { atMs: nowMs, ...(event.key !== undefined && { key: event.key }), ...also })
    for (const [index, dispatch] of dispatches.entries()) {
      if (dispatch.status === 'skipped') {
        const { sop, reason } = dispatch
        events.emit({ type: 'sop_skipped', sop, source: event.source, reason })
        log.info('procedure trigger skipped', { sop, source: event.source, topic: event.topic, reason })
        continue
      }
      const start = starts[index]
      // A repeated event gets the id of the run that its first delivery started, and an event may take the place of one that waits.
      if (start?.run.id !== dispatch.runId) continue
      const { run, audit } = dispatch.status === 'waiting' ? start.held(dispatch.reason) : start
      reportProgress(this.#ports, undefined, run, audit)
      this.#activeRuns.wake(run)
    }
    return dispatches
  }

  /** Returns the run whose step causes an event; undefined when no step does. */
  async #parentOf(by: string): Promise<SopRun | undefined> {
    const runId = by.startsWith(TURN_ACTOR) ? this.#activeRuns.runOfTurn(by.slice(TURN_ACTOR.length)) : undefined
    return runId === undefined ? undefined : this.#runs.read(runId)
  }

  /** The agent has recovered the turns of runs that were cancelled while no daemon ran. */
  async #abortTurnsOfEndedRuns(): Promise<void> {
    const { store, agent } = this.#ports
    for (const { attempt } of await store.runs({ active: false, limit: PAGE_SIZE })) {
      if (attempt?.turnId) agent.abort(attempt.turnId, STEP_OWNER)
    }
  }

  /** Deletes old ended runs now and once an hour, until the signal aborts. */
  async pruneEveryHour(signal: AbortSignal): Promise<void> {
    const { store, config, clock, log } = this.#ports
    while (!signal.aborted) {
      try {
        await store.prune({ finishedMax: config().max_finished_runs, keysBeforeMs: olderThanMs(clock, EVENT_KEYS_KEPT_MS) })
      } catch (error) {
        log.warn('pruning of ended runs failed', { error })
      }
      await clock.sleep(PRUNE_EVERY_MS, signal)
    }
  }
}

/** Yields every unfinished run of these shards, oldest first. */
async function* unfinishedRuns({ sops }: RunHome): AsyncGenerator<SopRun> {
  for (let after: string | null = null; ; ) {
    const page: readonly SopRun[] = await sops.unfinished({ after, limit: PAGE_SIZE })
    yield* page
    const last = page.at(-1)
    if (!last || page.length < PAGE_SIZE) return
    after = last.id
  }
}

const summaryOf = (definition: SopDefinition, activeRuns: number): SopSummary => {
  const { name, agent, description, version, priority, mode, steps, triggers } = definition
  return {
    name,
    agent,
    description,
    version,
    priority,
    mode,
    steps: steps.length,
    triggers: triggers.map(triggerText),
    openTo: openTo(definition),
    activeRuns,
  }
}

function unknownSop(loaded: readonly SopDefinition[], name: string): AppError {
  const near = nearestName(
    name,
    loaded.map((definition) => definition.name),
  )
  return new AppError('not_found', `There is no procedure "${name}"${near === undefined ? '' : `; is it "${near}"?`}`)
}
