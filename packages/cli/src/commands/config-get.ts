/** `sluice config get`: effective values, defaults and environment included; secrets never show. */

import { CORE_SECTIONS, effectiveConfig } from '@sluice/gateway/config'
import { AppError } from '@sluice/sdk'
import { type KeyPath, parseKeyPath } from '@sluice/toml'
import { configFromContext } from '../config-from-context.ts'
import type { CliContext } from '../context.ts'

export async function run(context: CliContext): Promise<number> {
  const { out, args, json, features } = context
  const [key] = args
  const path = key === undefined ? [] : parseKeyPath(key)
  const value = valueAt(effectiveConfig(await configFromContext(context), features, CORE_SECTIONS), path)
  if (value === undefined)
    throw new AppError('not_found', `nothing is set for '${key}', and it has no default; 'sluice config schema' lists the keys`)
  if (json || (typeof value === 'object' && value !== null)) out.json(value)
  else out.print(String(value))
  return 0
}

function valueAt(config: unknown, path: KeyPath): unknown {
  let value: unknown = config
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string, unknown>)[step]
  }
  return value
}
