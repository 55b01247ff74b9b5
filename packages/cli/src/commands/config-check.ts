/** `sluice config check`: the same validator the daemon uses; 0 if the daemon would start with everything it is told of. */
import { existsSync } from 'node:fs'
import { leftOutFiles } from '@sluice/config'
import { configFromContext } from '../config-from-context.ts'
import type { CliContext } from '../context.ts'

export async function run(context: CliContext): Promise<number> {
  const { out, json, configFile, dataDir, features } = context
  const { leftOut: sections, warnings: inFile } = await configFromContext(context)
  // What only shows when the parts are put together, such as a provider nobody knows, the daemon refuses too.
  const [{ openFromContext }, { unknownToolNames }] = await Promise.all([import('../open.ts'), import('@sluice/runtime/open-runtime')])
  const runtime = await openFromContext(context)
  const warnings = [...inFile, ...unknownToolNames(runtime.snapshot())]
  await runtime.close(0)
  const compiled = features.map(({ id }) => id)
  const leftOut = [...sections, ...leftOutFiles(dataDir, compiled)]
  if (json) out.json({ file: configFile, ok: leftOut.length === 0, left_out: leftOut, warnings })
  else {
    for (const warning of warnings) out.warn(`${out.style('yellow', 'warning')}: ${warning}`)
    for (const { feature, build, ...place } of leftOut) {
      const configured = 'file' in place ? place.file : `[${place.section}]`
      out.warn(`${configured} is for ${feature}, which this build leaves out. To get it: ${build}`)
    }
    if (leftOut.length === 0) out.print(existsSync(configFile) ? `${configFile} is valid` : `${configFile} does not exist: all defaults`)
  }
  return leftOut.length === 0 ? 0 : 78
}
