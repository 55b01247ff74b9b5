/** An engine that drives nothing: what it starts or changes is kept for the daemon, which looks every second. */
import { newTurnId } from '@sluice/agent'
import { sopSection } from '@sluice/config'
import { systemClock } from '@sluice/kit'
import { sopSettings } from '@sluice/runtime'
import { createLogger } from '@sluice/runtime/log'
import type { ClientId, Store } from '@sluice/sdk'
import { FolderLibrary, SopEngine } from '@sluice/sop'
import { configFromContext } from '../config-from-context.ts'
import type { CliContext } from '../context.ts'
import { agreedBy } from './open-sops.ts'

const onlyInTheDaemon = (): never => {
  throw new Error('steps are worked on in the daemon')
}

/** Its definitions are loaded. Runs it starts or changes wait in the store. */
export async function openEngine(context: CliContext, store: Store): Promise<SopEngine> {
  const config = await configFromContext(context)
  const log = createLogger({ level: 'error', format: 'text', stream: process.stderr, clock: systemClock })
  const events = { emit: () => {} }
  const settings = sopSettings(config, context.dataDir)
  const agreed = () => agreedBy(context, store)
  const library = new FolderLibrary({ settings: () => settings, agreed, clock: systemClock, log, events })
  await library.reload()
  return new SopEngine({
    store: store.sops,
    turns: store.turns,
    agent: { accept: onlyInTheDaemon, ended: onlyInTheDaemon, abort: () => false, call: onlyInTheDaemon },
    approvals: { open: onlyInTheDaemon, decide: onlyInTheDaemon, taker: onlyInTheDaemon },
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
