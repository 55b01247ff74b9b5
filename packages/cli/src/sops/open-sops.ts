/** Loads the procedures for a command, in the same way as the daemon loads them. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '@sluice/config'
import { nearestName, systemClock } from '@sluice/kit'
import { agreeAtUpgrade, sopSettings } from '@sluice/runtime'
import { createLogger } from '@sluice/runtime/log'
import { AppError, type Store } from '@sluice/sdk'
import { type Agreed, createAgreements, type SopDefinition, type WaitingSop } from '@sluice/sop'
import { type LoadedSops, loadSops } from '@sluice/sop/load-sops'
import { openStore } from '@sluice/store'
import type { CliContext } from '../context.ts'

/** The loaded procedures, their problems, and the procedures that wait for an operator. */
export interface OpenSops extends LoadedSops {
  /** The absolute path of the folder that the agent cannot write. */
  readonly folder: string
  /** The procedures in the workspace that operators have accepted. */
  readonly agreed: Agreed
}

/** Loads the procedures without changing anything, except that it accepts procedures after an upgrade. */
export async function openSops(context: CliContext): Promise<OpenSops> {
  const settings = sopSettings(await readConfig(context), context.dataDir)
  const agreed = await readAgreed(context)
  return { ...(await loadSops({ ...settings, agreed, nowMs: systemClock.nowMs() })), folder: settings.sources[0].folder, agreed }
}

/** Returns every procedure in a folder that the agent can write, accepted or not. */
export async function sopsInWorkspace(context: CliContext): Promise<readonly WaitingSop[]> {
  const settings = sopSettings(await readConfig(context), context.dataDir)
  return (await loadSops({ ...settings, agreed: new Map(), nowMs: systemClock.nowMs() })).waiting
}

/** Returns the accepted procedures. The first call after an upgrade accepts the procedures that the earlier release ran. */
export async function agreedSops(context: CliContext, store: Store): Promise<Agreed> {
  const log = createLogger({ level: 'warn', format: 'auto', stream: process.stderr, clock: systemClock })
  await agreeAtUpgrade({ store, config: await readConfig(context), dataDir: context.dataDir, clock: systemClock, log })
  return createAgreements(store.keyValue('sop')).all()
}

/** Reads the accepted procedures without creating a database if there is none. */
async function readAgreed(context: CliContext): Promise<Agreed> {
  const file = join(context.dataDir, 'sluice.db')
  if (!existsSync(file)) return new Map()
  const log = createLogger({ level: 'error', format: 'auto', stream: process.stderr, clock: systemClock })
  const store = openStore({ file, clock: systemClock, log })
  try {
    return await agreedSops(context, store)
  } finally {
    await store.close()
  }
}

/** Returns the procedure with the name. Throws `not_found` with the nearest name, and with the number of folders that have errors. */
export function sopNamed({ definitions, broken }: OpenSops, name: string): SopDefinition {
  const found = definitions.find((definition) => definition.name === name)
  if (found) return found
  const nearest = nearestName(
    name,
    definitions.map((definition) => definition.name),
  )
  const hint = nearest === undefined ? '' : `; is it "${nearest}"?`
  const errors = broken > 0 ? ` ${broken} folders have errors: 'sluice sop validate' shows them.` : ''
  throw new AppError('not_found', `There is no procedure "${name}"${hint}.${errors}`)
}
