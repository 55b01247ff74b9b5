/** `sluice config set`: changes the file; comments stay, secrets are encrypted, and a change that is not valid is not saved. */
import { type ConfigSource, placeOfKey } from '@sluice/config'
import { encryptInConfig, isSecretKey, setConfig } from '@sluice/config/edit'
import { withClusterConfig } from '@sluice/runtime/open-backend'
import { providerProblem } from '@sluice/runtime/provider-problem'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { readHidden, readInput } from '../read-input.ts'

const VALUE_BYTES_MAX = 262_144

/** One changed key, as `--json` prints it. */
interface Change {
  readonly key: string
  readonly done: 'removed' | 'set' | 'set and encrypted' | 'encrypted'
}

interface Setting {
  readonly path: string
  readonly value: string
}

export const run = (context: CliContext): Promise<number> => withClusterConfig(context, changeAndReport)

async function changeAndReport(context: CliContext & ConfigSource): Promise<number> {
  const { out, json, configFile } = context
  const changes = await changeFile(context)
  const problem = await providerProblem(context)
  if (json) out.json({ file: configFile, changes, ...(problem === undefined ? {} : { problem }) })
  else {
    for (const { key, done } of changes) out.print(`${key} ${done} in ${placeOfKey(context, key)}`)
    if (problem !== undefined) out.warn(`${out.style('yellow', 'warning')}: the daemon would not start with this file yet: ${problem}`)
  }
  return 0
}

async function changeFile(context: CliContext & ConfigSource): Promise<Change[]> {
  const { args, options } = context
  if (options.unset === true) {
    await setConfig(
      context,
      args.map((path) => ({ path, value: undefined })),
    )
    return args.map((key) => ({ key, done: 'removed' }))
  }
  const [first = '', ...more] = args
  if (more.length > 0) return saveSettings(context, await readSettings(context))
  const found = await encryptInConfig(context, first)
  if (found === 'encrypted') return [{ key: first, done: 'encrypted' }]
  return saveSettings(context, [{ path: first, value: await readValue(context, first, found === 'secret') }])
}

async function saveSettings(context: CliContext & ConfigSource, settings: readonly Setting[]): Promise<Change[]> {
  const secrets = await setConfig(context, settings)
  return settings.map(({ path }, index) => ({ key: path, done: secrets[index] ? 'set and encrypted' : 'set' }))
}

/** Returns the arguments as pairs of key and value; reads the value of the last key if it has none. */
function readSettings(context: CliContext & ConfigSource): Promise<Setting[]> {
  const { args } = context
  const keys = args.filter((_, index) => index % 2 === 0)
  return Promise.all(
    keys.map(async (path, index) => {
      const value = args[2 * index + 1]
      return { path, value: value ?? (await readValue(context, path, await isSecretKey(context, path))) }
    }),
  )
}

/**
 * Reads a value from standard input, where other users of this machine cannot see it as they can see arguments. At a terminal, only
 * a secret is read. Throws `invalid_request` without a value.
 */
async function readValue({ stdin, out }: CliContext, key: string, isSecret: boolean): Promise<string> {
  let value: string | undefined
  if (!stdin.isTTY) value = (await readInput(stdin, VALUE_BYTES_MAX)).replace(/\r?\n$/, '')
  else if (isSecret) {
    out.warn(`the value of ${key}, which is not shown:`)
    value = await readHidden(stdin)
  }
  if (!value) throw new AppError('invalid_request', `a value for '${key}' is missing; to remove the key, add --unset`)
  return value
}
