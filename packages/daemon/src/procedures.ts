/** Procedures at work: loaded and watched, set off by requests, messages and the clock, brought on by their engine (§4.3). */

import { mkdir } from 'node:fs/promises'
import { newTurnId } from '@sluice/agent'
import { agentSection, sopSection } from '@sluice/config'
import type { OpenRuntime } from '@sluice/runtime'
import { sopSettings } from '@sluice/runtime'
import { CronClock, createAgreements, FolderLibrary, type LibrarySettings, SopEngine } from '@sluice/sop'
import { withdrawQuestions } from './withdraw-questions.ts'

export interface Procedures {
  /** Looks for what other processes have started or changed. */
  look(): Promise<void>
  /** Sets nothing off any more; steps have `graceMs` to end, and go on at the next start where they are cut. */
  stop(graceMs: number): Promise<void>
}

/** A change of one of these sections loads the procedures again. */
const SECTIONS = [sopSection, agentSection]

/** Makes the folder, so that the first procedure in it is noticed at once; where that fails, it is looked for now and then. */
async function makeFolder({ sources: [{ folder }] }: LibrarySettings): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch(() => undefined)
}

export async function startProcedures(runtime: OpenRuntime): Promise<Procedures> {
  const { store, agent, approvals, bus, clock, clients } = runtime
  const log = runtime.log.child('sop')
  const stopping = new AbortController()
  const cursor = store.keyValue('sop')
  const { all: agreed } = createAgreements(cursor)
  const settings = () => sopSettings(runtime.config(), runtime.dataDir)
  await makeFolder(settings())
  const folder = new FolderLibrary({ settings, agreed, clock, log, events: bus })
  const engine = new SopEngine({
    store: store.sops,
    turns: store.turns,
    agent,
    approvals,
    library: folder,
    events: bus,
    clock,
    log,
    config: () => runtime.config().core(sopSection),
    client: clients.ofCaller('sop'),
    observe: (observation) => runtime.snapshot().observe(observation),
    newId: () => newTurnId(clock.nowMs()),
  })
  // Before anything is read, so that no change falls between the two.
  void folder.watch(stopping.signal)
  await folder.reload()
  const resumed = await engine.resume()
  await withdrawQuestions(runtime)
  if (resumed > 0) log.info('taking up runs the last run of the daemon left unfinished', { runs: resumed })
  runtime.offer({ sops: engine })

  const cron = new CronClock(clock, log, {
    async load() {
      const kept = await cursor.get('cron')
      return typeof kept === 'number' ? kept : undefined
    },
    save: (atMs) => cursor.set('cron', atMs),
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
  const setTriggers = (): void =>
    cron.setTriggers(
      folder
        .list()
        .flatMap(({ name, triggers }) =>
          triggers.flatMap((trigger) =>
            trigger.type === 'cron' ? [{ sop: name, expression: trigger.expression, timezone: trigger.timezone }] : [],
          ),
        ),
    )
  setTriggers()
  folder.onReload(setTriggers)
  void cron.run(stopping.signal)
  let applied = runtime.config()
  const unsubscribe = runtime.onSnapshot(({ config }) => {
    const hasChanged = SECTIONS.some(({ path }) => config.hash('core', path) !== applied.hash('core', path))
    applied = config
    if (hasChanged) void folder.reload()
  })
  return {
    async look() {
      await folder.refresh()
      await engine.refresh()
    },
    async stop(graceMs) {
      stopping.abort()
      unsubscribe()
      await engine.stop(graceMs)
    },
  }
}
