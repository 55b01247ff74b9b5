/**
 * A simulated daemon with procedures, driven through one interleaving. Each call that the engine makes proceeds when the test
 * chooses it, people and events act in between, and the process may crash at any moment and restart on the stored state.
 */
import { type Approval, type AuditRow, type ClientId, type NewDecision, SOP_ENDED, type SopRun } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { memoryApprovals } from '@sluice/testkit/memory-approvals'
import { memorySopStore } from '@sluice/testkit/memory-sop-store'
import type { SopDefinition } from '../definition/definition.ts'
import { SopEngine } from '../run/engine.ts'
import type { EnginePorts } from '../run/engine-ports.ts'
import { STEP_TOOLS } from '../run/step-prompt.ts'
import { auditProblems } from './audit-problems.ts'
import { FakeAgent, type FakeTurn } from './fake-agent.ts'
import { Interleaver } from './interleaver.ts'
import { event, library, sop } from './samples.ts'

const DEFINITIONS: readonly SopDefinition[] = [
  sop('auto', { mode: 'auto', steps: [{}, { requiresConfirmation: true }, { kind: 'checkpoint' }] }),
  sop('supervised', { mode: 'supervised', maxConcurrent: 2, steps: [{}, {}] }),
  sop('each', { mode: 'step_by_step', steps: [{}, { kind: 'checkpoint' }, { tools: [] }] }),
  sop('urgent', { mode: 'priority_based', priority: 'high', steps: [{}, { requiresConfirmation: true }] }),
  sop('pipe', {
    mode: 'deterministic',
    maxConcurrent: 2,
    steps: [{ tools: ['look'] }, { tools: ['act'] }, { kind: 'checkpoint' }, { tools: ['act'] }],
  }),
  sop('pause', { mode: 'supervised', steps: [{ kind: 'checkpoint' }] }),
]
const FIRES_MAX = 4
/** Longer sleeps never end. */
const SLEEP_MS_MAX = 120_000
/** More moves than any run needs to end once nothing fails any more. */
const FAIR_MOVES_MAX = 5000

interface Process {
  readonly interleaver: Interleaver
  readonly agent: FakeAgent
  readonly engine: SopEngine
  readonly approvals: ReturnType<typeof memoryApprovals>
  readonly other: SopEngine
}

interface Move {
  readonly name: string
  readonly weight: number
  do(): void
}

export type Tally = Map<string, number>

/** One interleaving: call `choose` for each move, then `conclude`. */
export class World {
  readonly #clock = testHost().clock
  #nowMs = this.#clock.nowMs()
  readonly #store = memorySopStore()
  readonly #approvals = new Map<string, Approval>()
  readonly #turns = new Map<string, FakeTurn>()
  /** The number of side effects by run and step. */
  readonly #effects = new Map<string, number>()
  readonly #tally: Tally
  readonly #problems: string[] = []
  #ids = 0
  #fires = 0
  #process: Process

  constructor(tally: Tally = new Map()) {
    this.#tally = tally
    this.#process = this.#boot()
  }

  /** Makes one of the possible moves. */
  async choose(choice: number): Promise<void> {
    const move = pick(await this.#moves(), choice)
    this.#count(move.name)
    move.do()
    await settle()
  }

  /** Lets all runs end without further failures and returns the broken rules. */
  async conclude(): Promise<readonly string[]> {
    for (let moves = 0; !(await this.#isOver()); moves++) {
      if (moves > FAIR_MOVES_MAX) {
        const stuck = (await this.#runs()).filter(({ status }) => !SOP_ENDED.includes(status))
        return [
          ...this.#problems,
          ...stuck.map((run) => `${run.id} (${run.sop}) is stuck: ${run.status}, step ${run.step}, attempt ${JSON.stringify(run.attempt)}`),
        ]
      }
      this.#proceed()
      await settle()
    }
    const runs = await this.#runs()
    for (const { sop, status } of runs) this.#count(`run ${sop} ${status}`)
    for (const { kind } of await this.#log()) this.#count(`record ${kind}`)
    return [...this.#problems, ...(await this.#auditProblems(runs)), ...(await this.#effectProblems(runs))]
  }

  #boot(): Process {
    const interleaver = new Interleaver()
    const agent = new FakeAgent(this.#turns)
    const clock = {
      nowMs: () => this.#nowMs,
      monotonicMs: () => this.#nowMs,
      sleep: async (ms: number, signal?: AbortSignal) => {
        if (signal?.aborted || ms > SLEEP_MS_MAX) return ms > SLEEP_MS_MAX ? new Promise<void>(() => undefined) : undefined
        const aborted = Promise.withResolvers<void>()
        signal?.addEventListener('abort', () => aborted.resolve(), { once: true })
        await Promise.race([interleaver.hop('sleep', { ms }), aborted.promise])
      },
    }
    const approvals = memoryApprovals(clock, this.#approvals)
    const { events, log } = testHost()
    const sops = interleaver.through('store', this.#store, { isShaky: true })
    const ports: EnginePorts = {
      store: sops,
      turns: interleaver.through('turns', { get: (id: string) => agent.get(id) }),
      agent: interleaver.through('agent', agent, { isShaky: true, except: ['abort', 'call', 'ended', 'end', 'get'] }),
      approvals: interleaver.through('approvals', approvals, { isShaky: true, except: ['onDecision', 'all'] }),
      library: library(...DEFINITIONS),
      events,
      clock,
      log,
      config: () => ({ max_concurrent_total: 2, max_age_hours: 24, approval_timeout_secs: 300, max_finished_runs: 0 }),
      client: 'sop' as ClientId,
      starters: { newsOf: () => undefined, queued: () => {} },
      observe: () => {},
      actorName: async (by) => by,
      newId: () => `id-${++this.#ids}`,
    }
    agent.tools.set('look', { risk: 'read', run: () => interleaver.hop('look').then(() => '{"found":1}') })
    agent.tools.set('act', { risk: 'execute', run: (input, call) => this.#act(interleaver, input, call) })
    const engine = new SopEngine(ports)
    engine.resume({ sops }).catch(() => this.#crash())
    return { interleaver, agent, engine, approvals, other: new SopEngine(ports) }
  }

  async #act(
    interleaver: Interleaver,
    input: unknown,
    { turn, callId }: { readonly turn: string; readonly callId: string },
  ): Promise<string> {
    const key = `${turn} ${callId.split('-')[1]}`
    await interleaver.hop('act')
    this.#effects.set(key, (this.#effects.get(key) ?? 0) + 1)
    await interleaver.hop('act answers')
    return JSON.stringify(input)
  }

  #crash(): void {
    this.#process.interleaver.kill()
    this.#process = this.#boot()
  }

  async #moves(): Promise<Move[]> {
    const { interleaver, agent, engine, approvals, other } = this.#process
    const runs = (await this.#runs()).filter(({ status }) => !SOP_ENDED.includes(status))
    const move = (name: string, weight: number, act: () => unknown): Move => ({ name, weight, do: () => void act() })
    const moves = [move('crash', 4, () => this.#crash()), move('look', 4, () => engine.refresh().catch(ignore))]
    for (const hop of interleaver.waiting) {
      moves.push(move('go', 50, () => this.#pass(hop)))
      if (hop.mayFail) moves.push(move('fail', 1, () => hop.fail()))
    }
    if (this.#fires < FIRES_MAX) {
      for (const { name } of DEFINITIONS) {
        moves.push(
          move('fire', 5, () => this.#fire(engine, name)),
          move('fire elsewhere', 1, () => this.#fire(other, name)),
        )
      }
    }
    for (const approval of approvals.all()) {
      if (approval.state !== 'pending') continue
      const decide = (state: 'approved' | 'rejected' | 'expired' | 'cancelled') =>
        approvals.decide(approval, decisionOf(state)).catch(ignore)
      moves.push(
        move('approve', 60, () => decide('approved')),
        move('reject', 3, () => decide('rejected')),
        move('expire', 3, () => decide('expired')),
        move('withdraw', 1, () => decide('cancelled')),
      )
    }
    for (const run of runs) {
      moves.push(
        move('cancel', 1, () => engine.cancel(run.id, 'device:1', 'enough').catch(ignore)),
        move('cancel elsewhere', 1, () => other.cancel(run.id, 'cli:anna', 'enough').catch(ignore)),
      )
      if (run.gate) moves.push(move('approve by name', 5, () => engine.approve(run.id, 'cli:anna').catch(ignore)))
    }
    for (const turn of agent.live) moves.push(...this.#turnMoves(turn, move))
    return moves
  }

  #turnMoves(turn: FakeTurn, move: (name: string, weight: number, act: () => unknown) => Move): Move[] {
    const { agent, engine } = this.#process
    const runId = turn.session.slice('sop:'.length)
    const fail = (code: string) => agent.end(turn.id, { status: 'failed', error: { code, message: 'failed' } })
    const report = (status: 'completed' | 'failed' | 'skipped') => engine.report(runId, turn.id, { status, output: status }).catch(ignore)
    return [
      move('done', 90, () => agent.end(turn.id, { status: 'done', response: 'done' })),
      move('failed permanently', 3, () => fail('internal')),
      move('failed for now', 60, () => fail('unavailable')),
      move('aborted', 2, () => agent.end(turn.id, { status: 'aborted' })),
      move('report completed', 20, () => report('completed')),
      move('report failed', 6, () => report('failed')),
      move('report skipped', 30, () => report('skipped')),
      ...(turn.hasActed || !canAct(turn) ? [] : [move('act', 80, () => this.#turnActs(turn))]),
    ]
  }

  /** A turn has its side effect once, because its checkpoint records it. */
  #turnActs(turn: FakeTurn): void {
    Object.assign(turn, { hasActed: true, hasAnswer: true })
    const step = /carry out step (\d+)/.exec(turn.text)?.[1]
    const key = `${turn.session.slice('sop:'.length)} ${step}`
    this.#effects.set(key, (this.#effects.get(key) ?? 0) + 1)
  }

  #fire(engine: SopEngine, name: string): void {
    const number = this.#fires++
    // The second event repeats the first.
    const key = number < 2 ? 'twice' : `once-${number}`
    engine.fire(event(`/${number < 2 ? 'supervised' : name}`, { key, atMs: this.#nowMs })).catch(ignore)
  }

  #pass(hop: { readonly ms: number | null; go(): void }): void {
    this.#nowMs += hop.ms ?? 1
    hop.go()
  }

  /** Proceeds with the oldest call. Without one, a turn ends, a person approves, a sleep is over, or the engine refreshes. */
  #proceed(): void {
    const { interleaver, agent, engine, approvals } = this.#process
    const [sleep] = interleaver.waiting
    const call = interleaver.waiting.find(({ ms }) => ms === null)
    const [turn] = agent.live
    const pending = approvals.all().find(({ state }) => state === 'pending')
    if (call) this.#pass(call)
    else if (turn) agent.end(turn.id, { status: 'done', response: 'done' })
    else if (pending) void approvals.decide(pending, { state: 'approved', by: 'chat:anna', who: { standing: 'listed', isAsked: true } })
    else if (sleep) this.#pass(sleep)
    else void engine.refresh().catch(ignore)
  }

  async #isOver(): Promise<boolean> {
    if (this.#process.interleaver.waiting.length > 0 || this.#process.agent.live.length > 0) return false
    return (await this.#runs()).every(({ status }) => SOP_ENDED.includes(status))
  }

  #runs(): Promise<SopRun[]> {
    return this.#store.runs({ limit: 1000 })
  }

  #log(): Promise<AuditRow[]> {
    return this.#store.audit({ limit: 100_000 })
  }

  async #auditProblems(runs: readonly SopRun[]): Promise<string[]> {
    const log = await this.#log()
    const repeated = runs.filter(({ event: { key } }) => key === 'twice').length > 1 ? ['an event was handled twice'] : []
    return [
      ...repeated,
      ...runs.flatMap((run) => [
        ...auditProblems(
          run,
          log.filter((row) => row.run === run.id),
        ),
        ...this.#decisionProblems(run, log),
      ]),
    ]
  }

  /** Compares the decisions of the log with the approvals. */
  #decisionProblems(run: SopRun, log: readonly AuditRow[]): string[] {
    const states: Readonly<Record<string, Approval['state']>> = { approved: 'approved', rejected: 'rejected', expired: 'expired' }
    return log.flatMap(({ run: runId, kind, detail, by }) => {
      const state = states[kind]
      if (runId !== run.id || state === undefined) return []
      const approval = this.#approvals.get(`${run.id} ${detail.gate}`)
      return approval?.state === state && approval.by === by
        ? []
        : [`${run.id}: ${kind} by ${by}, but it was ${approval?.state} by ${approval?.by}`]
    })
  }

  async #effectProblems(runs: readonly SopRun[]): Promise<string[]> {
    const log = await this.#log()
    return runs.flatMap(({ id, steps }) =>
      steps.flatMap(({ number }) => {
        const allowed =
          1 +
          log.filter(
            ({ run, kind, detail }) => run === id && kind === 'approved' && String(detail.gate).startsWith(`step-${number}-again-`),
          ).length
        const had = this.#effects.get(`${id} ${number}`) ?? 0
        return had > allowed ? [`${id}: step ${number} took effect ${had} times, but ${allowed} were allowed`] : []
      }),
    )
  }

  #count(name: string): void {
    this.#tally.set(name, (this.#tally.get(name) ?? 0) + 1)
  }
}

/** The reporting tools have no side effects. */
const canAct = ({ tools }: FakeTurn): boolean => tools?.every((tool) => STEP_TOOLS.includes(tool)) !== true

/** Picks a move with a probability proportional to its weight. */
function pick(moves: readonly Move[], choice: number): Move {
  let left = choice % moves.reduce((sum, { weight }) => sum + weight, 0)
  for (const move of moves) {
    if (left < move.weight) return move
    left -= move.weight
  }
  throw new Error('there is no move')
}

const decisionOf = (state: 'approved' | 'rejected' | 'expired' | 'cancelled'): NewDecision => {
  if (state === 'expired') return { state, by: 'timeout' }
  return state === 'cancelled' ? { state, by: 'system' } : { state, by: 'chat:anna', who: { standing: 'listed', isAsked: true } }
}

const ignore = (): undefined => undefined
/** Lets all work proceed that waits for nothing. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
