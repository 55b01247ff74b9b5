/** An engine with in-memory services. It can crash and restart on the stored state. */
import type { Approval, ClientId, NewAudit, SopRun } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { type MemoryApprovals, memoryApprovals } from '@sluice/testkit/memory-approvals'
import { memorySopStore } from '@sluice/testkit/memory-sop-store'
import type { SopDefinition } from '../definition.ts'
import { SopEngine } from '../engine.ts'
import type { EnginePorts, SopSettings } from '../engine-ports.ts'
import { FakeAgent } from './fake-agent.ts'
import { event, library } from './samples.ts'

export interface SopBench {
  readonly host: TestHost
  readonly store: EnginePorts['store']
  agent: FakeAgent
  approvals: MemoryApprovals
  engine: SopEngine
  /** The engine of a process that does not carry out runs. */
  readonly other: SopEngine
  readonly settings: { -readonly [Key in keyof SopSettings]: SopSettings[Key] }
  /** Fires the procedure's webhook. Resolves to the id of its run once the engine rests. */
  fire(name: string): Promise<string>
  run(runId: string): Promise<SopRun>
  /** Decides the gate at which the run waits. */
  decide(runId: string, state: 'approved' | 'rejected' | 'expired' | 'cancelled', feedback?: string): Promise<void>
  /** Returns the turn that carries out the run. */
  turnOf(runId: string): string
  kinds(runId: string): Promise<readonly NewAudit['kind'][]>
  /** Simulates a crash and a restart. */
  restart(): Promise<void>
  settle(): Promise<void>
}

export async function sopBench(definitions: readonly SopDefinition[], overrides: Partial<EnginePorts> = {}): Promise<SopBench> {
  const host = testHost()
  const store = memorySopStore()
  const kept = new Map<string, Approval>()
  const settings = { max_concurrent_total: 100, approval_timeout_secs: 300, max_finished_runs: 0 }
  let ids = 0
  let generation = 0

  const make = (agent: FakeAgent, approvals: MemoryApprovals): SopEngine => {
    const mine = generation
    const untilCrash = <Port extends object>(port: Port): Port =>
      new Proxy(port, {
        get: (target, key) => {
          const member: unknown = Reflect.get(target, key)
          if (typeof member !== 'function') return member
          return (...args: unknown[]) => (mine === generation ? Reflect.apply(member, target, args) : new Promise(() => undefined))
        },
      })
    return new SopEngine({
      store: untilCrash(store),
      turns: agent,
      agent: untilCrash(agent),
      approvals,
      library: library(...definitions),
      events: host.events,
      clock: untilCrash(host.clock),
      log: host.log,
      config: () => settings,
      client: 'sop' as ClientId,
      observe: () => {},
      newId: () => `id-${++ids}`,
      ...overrides,
    })
  }
  const settle = () => host.advance(0)
  const agent = new FakeAgent()
  const approvals = memoryApprovals(host.clock, kept)
  const bench: SopBench = {
    host,
    store,
    agent,
    approvals,
    settings,
    engine: make(agent, approvals),
    other: make(agent, approvals),
    async fire(name) {
      const [dispatch] = await bench.engine.fire(event(`/${name}`))
      await settle()
      if (dispatch?.status !== 'started') throw new Error(`${name} was not started`)
      return dispatch.runId
    },
    async run(runId) {
      const run = await store.get(runId)
      if (!run) throw new Error(`no run ${runId}`)
      return run
    },
    async decide(runId, state, feedback) {
      const { gate } = await bench.run(runId)
      await bench.approvals.decide(
        { runId, stepId: gate?.stepId ?? '' },
        { state, by: 'chat:anna', ...(feedback !== undefined && { feedback }) },
      )
      await settle()
    },
    turnOf(runId) {
      const turn = bench.agent.live.find(({ session }) => session === `sop:${runId}`)
      if (!turn) throw new Error(`no turn works on ${runId}`)
      return turn.id
    },
    kinds: async (runId) => (await store.audit({ limit: 1000, run: runId })).map(({ kind }) => kind),
    async restart() {
      generation++
      const { tools } = bench.agent
      bench.agent = new FakeAgent(bench.agent.turns)
      for (const [name, tool] of tools) bench.agent.tools.set(name, tool)
      bench.approvals = memoryApprovals(host.clock, kept)
      bench.engine = make(bench.agent, bench.approvals)
      await bench.engine.resume()
      await settle()
    },
    settle,
  }
  await bench.engine.resume()
  return bench
}
