/** `sluice config set`: one value in the file; comments stay, secrets are encrypted, the result is valid or not saved. */
import { setConfig } from '@sluice/gateway/config'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'

export async function run(context: CliContext): Promise<number> {
  const { args, options, out, json, configFile } = context
  const [key = '', value] = args
  const unset = options.unset === true
  if (!unset && value === undefined)
    throw new AppError('invalid_request', `a value for '${key}' is missing; to remove the key, add --unset`)
  const { secret } = await setConfig(context, key, unset ? undefined : value)
  const done = unset ? 'removed' : secret ? 'set and encrypted' : 'set'
  if (json) out.json({ file: configFile, key, done })
  else out.print(`${key} ${done} in ${configFile}`)
  return 0
}
