/** `sluice config get`: effective values, defaults and environment included; secrets never show. */
import { CORE_SECTIONS, effectiveConfig, followPath, formatKeyPath, type KeyPath, parseKeyPath } from '@sluice/config'
import { AppError } from '@sluice/sdk'
import { configFromContext } from '../config-from-context.ts'
import type { CliContext } from '../context.ts'

export async function run(context: CliContext): Promise<number> {
  const { out, args, json, features, options, configFile } = context
  const [key] = args
  const path = key === undefined ? [] : parseKeyPath(key)
  const config = await configFromContext(context)
  const value = followPath(effectiveConfig(config, features, CORE_SECTIONS), path)
  if (value === undefined)
    throw new AppError('not_found', `nothing is set for '${key}', and it has no default; 'sluice config schema' lists the keys`)
  if (options.source === true) {
    const rows = leavesOf(value, path).map(([at, leaf]) => {
      const source = config.source(at)
      const from =
        source.kind === 'file' ? configFile : source.kind === 'environment' ? `environment variable ${source.variable}` : 'default'
      return { key: formatKeyPath(at), value: leaf, source: source.kind, from }
    })
    if (json) out.json(rows.map(({ from, ...row }) => ({ ...row, ...(row.source === 'default' ? {} : { from }) })))
    else
      out.table(
        ['key', 'value', 'from'],
        rows.map((row) => [row.key, JSON.stringify(row.value), row.from]),
      )
    return 0
  }
  if (json || (typeof value === 'object' && value !== null)) out.json(value)
  else out.print(String(value))
  return 0
}

/** Every value that is no table, with its path; a list is one value. */
function leavesOf(value: unknown, path: KeyPath): [path: KeyPath, value: unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, value]]
  return Object.entries(value).flatMap(([name, child]) => leavesOf(child, [...path, name]))
}
