/** The procedures, for a command: loaded as the daemon does, with what is wrong in them and what waits for an operator. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { nearestName, systemClock } from '@sluice/kit'
import { agreeAtUpgrade, sopSettings } from '@sluice/runtime'
import { createLogger } from '@sluice/runtime/log'
import { AppError, type Store } from '@sluice/sdk'
import { type Agreed, createAgreements, type SopDefinition, type WaitingSop } from '@sluice/sop'
import { type LoadedSops, loadSops } from '@sluice/sop/load-sops'
import { openStore } from '@sluice/store'
import { configFromContext } from '../config-from-context.ts'
import type { CliContext } from '../context.ts'

export interface OpenSops extends LoadedSops {
  /** Absolute: where procedures are meant to be. */
  readonly folder: string
  readonly agreed: Agreed
}

export async function openSops(context: CliContext): Promise<OpenSops> {
  const settings = sopSettings(await configFromContext(context), context.dataDir)
  const agreed = await agreedIn(context)
  return { ...(await loadSops({ ...settings, agreed, nowMs: systemClock.nowMs() })), folder: settings.sources[0].folder, agreed }
}

/** Every procedure in a folder that the agent can write, agreed to or not. */
export async function sopsInWorkspace(context: CliContext): Promise<readonly WaitingSop[]> {
  const settings = sopSettings(await configFromContext(context), context.dataDir)
  return (await loadSops({ ...settings, agreed: new Map(), nowMs: systemClock.nowMs() })).waiting
}

/** What operators have agreed to, with what an upgrade of this installation agrees to. */
export async function agreedBy(context: CliContext, store: Store): Promise<Agreed> {
  const log = createLogger({ level: 'warn', format: 'auto', stream: process.stderr, clock: systemClock })
  await agreeAtUpgrade({ store, config: await configFromContext(context), dataDir: context.dataDir, clock: systemClock, log })
  return createAgreements(store.keyValue('sop')).all()
}

/** No store is made for a command that only reads. */
async function agreedIn(context: CliContext): Promise<Agreed> {
  const file = join(context.dataDir, 'sluice.db')
  if (!existsSync(file)) return new Map()
  const log = createLogger({ level: 'error', format: 'auto', stream: process.stderr, clock: systemClock })
  const store = openStore({ file, clock: systemClock, log })
  try {
    return await agreedBy(context, store)
  } finally {
    await store.close()
  }
}

/** Throws `not_found`, with the nearest name, and with what is wrong where that is why it is not there. */
export function sopNamed({ definitions, broken }: OpenSops, name: string): SopDefinition {
  const found = definitions.find((definition) => definition.name === name)
  if (found) return found
  const near = nearestName(
    name,
    definitions.map((definition) => definition.name),
  )
  const hint = near === undefined ? '' : `; is it "${near}"?`
  const errors = broken > 0 ? ` ${broken} folders have errors: 'sluice sop validate' shows them.` : ''
  throw new AppError('not_found', `There is no procedure "${name}"${hint}.${errors}`)
}
