/** Runs procedures: loads and watches their definitions, and triggers them by requests, messages and the clock. */

import { mkdir } from 'node:fs/promises'
import { newTurnId } from '@sluice/agent'
import { agentSection, agentsSection, deliverySection, gatewaySection, sopSection } from '@sluice/config'
import { newsOfRun, waitingReplies } from '@sluice/delivery'
import { sopSettings } from '@sluice/runtime'
import { actorName, type KeyValue, type Logger, type OwnedStore, type StoreChange } from '@sluice/sdk'
import { CronClock, createAgreements, FolderLibrary, SopEngine } from '@sluice/sop'
import type { OpenRuntime } from './runtime/open-runtime.ts'
import { withdrawOrphanedApprovals } from './withdraw-approvals.ts'

export interface Procedures {
  /** Reads what other processes have started or changed in the store. */
  look(change: StoreChange): Promise<void>
  /** Deletes old ended runs once an hour, until the signal aborts. */
  pruneEveryHour(signal: AbortSignal): Promise<void>
  /** Triggers no more runs. Steps have `graceMs` to end; an interrupted step is resumed at the next start. */
  stop(graceMs: number): Promise<void>
}

/** A change of one of these sections loads the procedures again. */
const SECTIONS = [sopSection, agentSection, agentsSection]

/**
 * For a command, which carries out no runs: loads the procedures and offers the engine as the service `sops`. Runs that are started or
 * changed wait in the store for a daemon. Problems of procedures are not logged: the answers of the API name them.
 */
export async function openProcedures(runtime: OpenRuntime): Promise<void> {
  const library = createLibrary(runtime, runtime.store.keyValue('sop'), SILENT)
  await library.reload()
  runtime.offer({ sops: createEngine(runtime, library) })
}

const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** Resumes unfinished runs, and offers the engine as the service `sops`. */
export async function startProcedures(runtime: OpenRuntime): Promise<Procedures> {
  const log = runtime.log.child('sop')
  const { ownership } = runtime
  const stopping = new AbortController()
  const library = createLibrary(runtime, runtime.store.keyValue('sop'), log)
  const engine = createEngine(runtime, library)

  // A folder that exists can be watched, so that its first procedure is noticed at once. Without it, the library polls.
  await mkdir(sopSettings(runtime.config(), runtime.dataDir).sources[0].folder, { recursive: true, mode: 0o700 }).catch(() => undefined)
  // The watch starts before the first load, so that no change falls between the two.
  void library.watch(stopping.signal)
  await library.reload()
  let ownedSinceMs: number | undefined = runtime.startedAtMs
  const resume = async (owned: OwnedStore): Promise<void> => {
    const resumed = await engine.resume(owned)
    await withdrawOrphanedApprovals(runtime, owned, ownedSinceMs ?? runtime.clock.nowMs())
    if (resumed > 0) log.info('resuming unfinished runs', { runs: resumed })
  }
  const leaveShards = await ownership.onShards(resume, (owned) => engine.leave(owned))
  ownedSinceMs = undefined
  runtime.offer({ sops: engine })

  const runCron = (owned: OwnedStore, signal: AbortSignal) => startCron(runtime, { owned, library, engine }, signal)
  void ownership.whileHolding('leader/cron', runCron, stopping.signal)
  const unsubscribe = [leaveShards, reloadOnChange(runtime, library), runtime.procedures.onChange(() => library.reload())]
  return {
    async look(change) {
      await library.refresh()
      await engine.refresh(change)
    },
    pruneEveryHour: (signal) => engine.pruneEveryHour(signal),
    async stop(graceMs) {
      stopping.abort()
      for (const stop of unsubscribe) stop()
      await engine.stop(graceMs)
    },
  }
}

function createLibrary(runtime: OpenRuntime, keyValue: KeyValue, log: Logger): FolderLibrary {
  const { clock, bus } = runtime
  const settings = () => sopSettings(runtime.config(), runtime.dataDir)
  const { all: agreed } = createAgreements(keyValue)
  return new FolderLibrary({ settings, agreed, clock, log, events: bus })
}

function createEngine(runtime: OpenRuntime, library: FolderLibrary): SopEngine {
  const { store, agent, approvals, bus, clock, clients, delivery } = runtime
  const features = { channels: () => runtime.snapshot().channels, texts: () => runtime.config().core(gatewaySection).texts }
  return new SopEngine({
    store: store.sops,
    turns: store.turns,
    agent,
    approvals,
    library,
    events: bus,
    clock,
    log: runtime.log.child('sop'),
    config: () => ({ ...runtime.config().core(sopSection), max_age_hours: runtime.config().core(deliverySection).max_age_hours }),
    client: clients.ofCaller('sop'),
    observe: (observation) => runtime.snapshot().observe(observation),
    starters: {
      newsOf: (run) => newsOfRun({ clock, features }, run),
      queued: ({ notice }, numbers) => delivery.queued(waitingReplies(notice, numbers)),
    },
    actorName: (by) => actorName(by, store.devices),
    newId: () => newTurnId(clock.nowMs()),
  })
}

/** Starts procedures at the times of their cron triggers, until the signal aborts. */
async function startCron(
  runtime: OpenRuntime,
  { owned, library, engine }: { readonly owned: OwnedStore; readonly library: FolderLibrary; readonly engine: SopEngine },
  signal: AbortSignal,
): Promise<void> {
  const cron = createCron(runtime, owned.keyValue('sop'), engine)
  const setTriggers = () => cron.setTriggers(cronTriggers(library))
  setTriggers()
  const unsubscribe = library.onReload(setTriggers)
  await cron.run(signal).finally(unsubscribe)
}

/** The clock of cron triggers. It keeps the time of the last look, so that the next start knows the missed instants. */
function createCron({ clock, log }: OpenRuntime, keyValue: KeyValue, engine: SopEngine): CronClock {
  return new CronClock(clock, log.child('sop'), {
    async load() {
      const kept = await keyValue.get('cron')
      return typeof kept === 'number' ? kept : undefined
    },
    save: (atMs) => keyValue.set('cron', atMs),
    async due({ sop, expression, instantMs, missed }) {
      const payload = JSON.stringify({ scheduled_at: new Date(instantMs).toISOString(), missed })
      await engine.fireOne(sop, {
        source: 'cron',
        topic: expression,
        payload,
        atMs: clock.nowMs(),
        by: 'clock',
        // Two expressions of one procedure may name one instant: it is one run.
        key: `cron ${sop} ${instantMs}`,
      })
    },
  })
}

function cronTriggers(library: FolderLibrary): { sop: string; expression: string; timezone: string }[] {
  return library
    .list()
    .flatMap(({ name, triggers }) =>
      triggers.flatMap((trigger) =>
        trigger.type === 'cron' ? [{ sop: name, expression: trigger.expression, timezone: trigger.timezone }] : [],
      ),
    )
}

/** Loads the procedures again when a snapshot changes their settings. Returns an unsubscribe function. */
function reloadOnChange(runtime: OpenRuntime, library: FolderLibrary): () => void {
  let applied = runtime.config()
  return runtime.onSnapshot(({ config }) => {
    const hasChanged = SECTIONS.some(({ path }) => config.hash('core', path) !== applied.hash('core', path))
    applied = config
    if (hasChanged) void library.reload()
  })
}
