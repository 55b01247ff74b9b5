/** Opens an engine that runs no steps: it stores new runs and changes of runs, and the daemon reads them every second. */
import { newTurnId } from '@sluice/agent'
import { readConfig, sopSection } from '@sluice/config'
import { systemClock } from '@sluice/kit'
import { sopSettings } from '@sluice/runtime'
import { createLogger } from '@sluice/runtime/log'
import type { ClientId, Store } from '@sluice/sdk'
import { FolderLibrary, SopEngine } from '@sluice/sop'
import type { CliContext } from '../context.ts'
import { agreedSops } from './open-sops.ts'

const onlyInTheDaemon = (): never => {
  throw new Error('Only the daemon works on the steps of a run')
}

/** Returns an engine whose definitions are loaded. */
export async function openEngine(context: CliContext, store: Store): Promise<SopEngine> {
  const config = await readConfig(context)
  const log = createLogger({ level: 'error', format: 'text', stream: process.stderr, clock: systemClock })
  const events = { emit: () => {} }
  const settings = sopSettings(config, context.dataDir)
  const agreed = () => agreedSops(context, store)
  const library = new FolderLibrary({ settings: () => settings, agreed, clock: systemClock, log, events })
  await library.reload()
  return new SopEngine({
    store: store.sops,
    turns: store.turns,
    agent: { accept: onlyInTheDaemon, ended: onlyInTheDaemon, abort: () => false, call: onlyInTheDaemon },
    approvals: { open: onlyInTheDaemon, decide: onlyInTheDaemon, onDecision: onlyInTheDaemon },
    library,
    events,
    clock: systemClock,
    log,
    config: () => config.core(sopSection),
    client: 'cli' as ClientId,
    observe: () => {},
    newId: () => newTurnId(systemClock.nowMs()),
  })
}
