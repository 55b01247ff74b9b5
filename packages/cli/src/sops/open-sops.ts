/** The procedures of a folder, for a command: loaded as the daemon does, with what is wrong in them. */

import { sopSettings } from '@sluice/gateway/sops'
import { AppError, systemClock } from '@sluice/sdk'
import type { SopDefinition } from '@sluice/sop'
import { type LoadedSops, loadSops } from '@sluice/sop/load-sops'
import { nearestName } from '@sluice/toml'
import { configFromContext } from '../config-from-context.ts'
import type { CliContext } from '../context.ts'

export interface OpenSops extends LoadedSops {
  /** Absolute. */
  readonly folder: string
}

export async function openSops(context: CliContext): Promise<OpenSops> {
  const settings = sopSettings(await configFromContext(context), context.dataDir)
  return { ...(await loadSops({ ...settings, nowMs: systemClock.nowMs() })), folder: settings.folder }
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
