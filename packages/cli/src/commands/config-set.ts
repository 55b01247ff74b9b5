/** `sluice config set`: values in the file; comments stay, secrets are encrypted, the result is valid or not saved. */
import { encryptInConfig, isSecretKey, setConfig } from '@sluice/config'
import { providerProblem } from '@sluice/runtime/provider-problem'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { readHidden, readInput } from '../read-input.ts'

const VALUE_BYTES_MAX = 262_144

interface Done {
  readonly key: string
  readonly done: 'removed' | 'set' | 'set and encrypted' | 'encrypted'
}

export async function run(context: CliContext): Promise<number> {
  const { out, json, configFile } = context
  const changes = await change(context)
  const problem = await providerProblem(context)
  if (json) out.json({ file: configFile, changes, ...(problem === undefined ? {} : { problem }) })
  else {
    for (const { key, done } of changes) out.print(`${key} ${done} in ${configFile}`)
    if (problem !== undefined) out.warn(`${out.style('yellow', 'warning')}: the daemon would not start with this file yet: ${problem}`)
  }
  return 0
}

async function change(context: CliContext): Promise<Done[]> {
  const { args, options } = context
  if (options.unset === true) {
    await setConfig(
      context,
      args.map((path) => ({ path, value: undefined })),
    )
    return args.map((key) => ({ key, done: 'removed' }))
  }
  const [first = '', ...more] = args
  if (more.length > 0) return set(context, await pairs(context))
  const found = await encryptInConfig(context, first)
  if (found === 'encrypted') return [{ key: first, done: 'encrypted' }]
  return set(context, [{ path: first, value: (await ask(context, first, found === 'secret')) ?? missing(first) }])
}

async function set(context: CliContext, changes: readonly { readonly path: string; readonly value: string }[]): Promise<Done[]> {
  const secrets = await setConfig(context, changes)
  return changes.map(({ path }, index) => ({ key: path, done: secrets[index] ? 'set and encrypted' : 'set' }))
}

/** Keys and values in turn; the value of a last secret without one is asked for. */
function pairs(context: CliContext) {
  const { args } = context
  const keys = args.filter((_, index) => index % 2 === 0)
  return Promise.all(
    keys.map(async (path, index) => {
      const given = args[2 * index + 1]
      return { path, value: given ?? (await ask(context, path, await isSecretKey(context, path))) ?? missing(path) }
    }),
  )
}

/** Reads a value that other users of this machine must not see in the arguments; undefined if the input is empty. */
async function ask({ stdin, out }: CliContext, key: string, secret: boolean): Promise<string | undefined> {
  if (!stdin.isTTY) return (await readInput(stdin, VALUE_BYTES_MAX)).replace(/\r?\n$/, '') || undefined
  if (!secret) return undefined
  out.warn(`the value of ${key}, which is not shown:`)
  return (await readHidden(stdin)) || undefined
}

function missing(key: string): never {
  throw new AppError('invalid_request', `a value for '${key}' is missing; to remove the key, add --unset`)
}
