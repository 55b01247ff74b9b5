/** An engine with in-memory services. It can crash and restart on the stored state. */
import type { Approval, ClientId, NewAudit, OwnedSopStore, SopRun } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { type MemoryApprovals, memoryApprovals } from '@sluice/testkit/memory-approvals'
import { memorySopStore } from '@sluice/testkit/memory-sop-store'
import type { SopDefinition } from '../definition/definition.ts'
import { SopEngine } from '../run/engine.ts'
import type { EnginePorts } from '../run/engine-ports.ts'
import { FakeAgent } from './fake-agent.ts'
import { event, libraryOf } from './samples.ts'

/** The ports of the engine that differ. The engine carries out the runs of its store. */
export type Overrides = Partial<EnginePorts> & { readonly store?: OwnedSopStore }

/** Resolves to a bench whose engine carries out runs. */
export async function sopBench(definitions: readonly SopDefinition[], overrides: Overrides = {}): Promise<SopBench> {
  const bench = new SopBench(definitions, overrides)
  await bench.resume()
  return bench
}

export class SopBench {
  readonly host: TestHost = testHost()
  readonly store = memorySopStore()
  readonly settings = { max_concurrent_total: 0, max_age_hours: 24, approval_timeout_secs: 300, max_finished_runs: 0 }
  agent = new FakeAgent()
  approvals: MemoryApprovals
  engine: SopEngine
  /** The engine of a process that does not carry out runs. */
  readonly other: SopEngine
  readonly #definitions: readonly SopDefinition[]
  readonly #overrides: Overrides
  readonly #storedApprovals = new Map<string, Approval>()
  #ids = 0
  #crashes = 0

  constructor(definitions: readonly SopDefinition[], overrides: Overrides) {
    this.#definitions = definitions
    this.#overrides = overrides
    this.approvals = memoryApprovals(this.host.clock, this.#storedApprovals)
    this.engine = this.#newEngine()
    this.other = this.#newEngine()
  }

  /** Fires the procedure's webhook. Resolves to the id of its run once the engine rests. */
  async fire(name: string): Promise<string> {
    const [dispatch] = await this.engine.fire(event(`/${name}`))
    await this.settle()
    if (dispatch?.status !== 'started') throw new Error(`${name} was not started`)
    return dispatch.runId
  }

  async run(runId: string): Promise<SopRun> {
    const run = await this.store.get(runId)
    if (!run) throw new Error(`no run ${runId}`)
    return run
  }

  /** Decides the gate at which the run waits. */
  async decide(runId: string, state: 'approved' | 'rejected' | 'expired' | 'cancelled', feedback?: string): Promise<void> {
    const { gate } = await this.run(runId)
    const by = { by: 'chat:anna', ...(feedback !== undefined && { feedback }) }
    const isAnswer = state === 'approved' || state === 'rejected'
    const decision = isAnswer ? { state, ...by, who: { standing: 'listed', isAsked: true } as const } : { state, ...by }
    await this.approvals.decide({ runId, stepId: gate?.stepId ?? '' }, decision)
    await this.settle()
  }

  /** Returns the turn that carries out the run. */
  turnOf(runId: string): string {
    const turn = this.agent.live.find(({ session }) => session === `sop:${runId}`)
    if (!turn) throw new Error(`no turn carries out ${runId}`)
    return turn.id
  }

  /** Resolves to the kinds of the run's audit records, in order. */
  async kinds(runId: string): Promise<readonly NewAudit['kind'][]> {
    return (await this.store.audit({ limit: 1000, run: runId })).map(({ kind }) => kind)
  }

  /** Makes the engine carry out the runs of all shards. */
  resume(): Promise<number> {
    return this.engine.resume({ sops: this.#overrides.store ?? this.#untilCrash(this.store) })
  }

  /** Returns the engine of one more process, which carries out no runs yet. */
  newProcess(): SopEngine {
    return this.#newEngine()
  }

  /** Simulates a crash and a restart. */
  async restart(): Promise<void> {
    this.#crashes++
    const { tools } = this.agent
    this.agent = new FakeAgent(this.agent.turns)
    for (const [name, tool] of tools) this.agent.tools.set(name, tool)
    this.approvals = memoryApprovals(this.host.clock, this.#storedApprovals)
    this.engine = this.#newEngine()
    await this.resume()
    await this.settle()
  }

  /** Lets the engine do everything that needs no time to pass. */
  settle(): Promise<void> {
    return this.host.advance(0)
  }

  #newEngine(): SopEngine {
    const { host } = this
    return new SopEngine({
      store: this.#untilCrash(this.store),
      turns: this.agent,
      agent: this.#untilCrash(this.agent),
      approvals: this.approvals,
      library: libraryOf(this.#definitions),
      events: host.events,
      clock: this.#untilCrash(host.clock),
      log: host.log,
      config: () => this.settings,
      client: 'sop' as ClientId,
      observe: () => {},
      starters: { newsOf: () => undefined, queued: () => {} },
      actorName: async (by) => by,
      newId: () => `id-${++this.#ids}`,
      ...this.#overrides,
    })
  }

  /** Returns the port with methods that never settle once the present process has crashed. */
  #untilCrash<Port extends object>(port: Port): Port {
    const crashes = this.#crashes
    return new Proxy(port, {
      get: (target, key) => {
        const member: unknown = Reflect.get(target, key)
        if (typeof member !== 'function') return member
        return (...args: unknown[]) => (crashes === this.#crashes ? Reflect.apply(member, target, args) : new Promise(() => undefined))
      },
    })
  }
}
