/** `sluice config seal`: encrypts every secret that the file holds in plain text. */
import { sealConfig } from '@sluice/config'
import type { CliContext } from '../context.ts'

export async function run(context: CliContext): Promise<number> {
  const { out, json, configFile } = context
  const sealed = await sealConfig(context)
  if (json) out.json({ file: configFile, sealed })
  else if (sealed.length === 0) out.print(`${configFile} holds no secret in plain text`)
  else for (const key of sealed) out.print(`${key} encrypted in ${configFile}`)
  return 0
}
