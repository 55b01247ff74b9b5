/** `sluice config set`: values in the file; comments stay, secrets are encrypted, the result is valid or not saved. */
import { encryptInConfig, setConfig } from '@sluice/gateway/config'
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
  if (json) out.json({ file: configFile, changes })
  else for (const { key, done } of changes) out.print(`${key} ${done} in ${configFile}`)
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
  if (more.length > 0) return set(context, pairs(args))
  const found = await encryptInConfig(context, first)
  if (found === 'encrypted') return [{ key: first, done: 'encrypted' }]
  return set(context, [{ path: first, value: (await ask(context, first, found === 'secret')) ?? missing(first) }])
}

async function set(context: CliContext, changes: readonly { readonly path: string; readonly value: string }[]): Promise<Done[]> {
  const secrets = await setConfig(context, changes)
  return changes.map(({ path }, index) => ({ key: path, done: secrets[index] ? 'set and encrypted' : 'set' }))
}

const pairs = (args: readonly string[]) =>
  args.flatMap((path, index) => (index % 2 === 0 ? [{ path, value: args[index + 1] ?? missing(path) }] : []))

/** Kept out of the arguments, which others on this machine can read; undefined if nothing comes. */
async function ask({ stdin, out }: CliContext, key: string, secret: boolean): Promise<string | undefined> {
  if (!stdin.isTTY) return (await readInput(stdin, VALUE_BYTES_MAX)).replace(/\r?\n$/, '') || undefined
  if (!secret) return undefined
  out.warn(`the value of ${key}, which is not shown:`)
  return (await readHidden(stdin)) || undefined
}

function missing(key: string): never {
  throw new AppError('invalid_request', `a value for '${key}' is missing; to remove the key, add --unset`)
}
