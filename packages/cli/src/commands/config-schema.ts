/** `sluice config schema`: the JSON Schema of the configuration file, for editors. */
import { configSchema, sectionsOf } from '@sluice/config'
import type { CliContext } from '../context.ts'

export async function run({ out, features }: CliContext): Promise<number> {
  out.json(await configSchema(sectionsOf(features)))
  return 0
}
