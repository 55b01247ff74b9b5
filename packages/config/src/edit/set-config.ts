/** Changes keys of the configuration file: reads, changes, validates and saves it, and starts again when another process saved meanwhile. */
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { valueAt } from '@sluice/kit/foreign-json'
import { AppError, type ConfigAddition, loadFeatures } from '@sluice/sdk'
import { openSecretBox } from '@sluice/store/secret-box'
import { loadConfig } from '../read/load-config.ts'
import { type ConfigSource, parseConfig, sectionsOf } from '../read/read-config.ts'
import { parseKeyPath } from '../toml/key-path.ts'
import { parseToml, withoutMark } from '../toml/parse-toml.ts'
import { readNodeText, saveNodeText } from './cluster-text.ts'
import { type Change, findPlainSecret, type SetOptions, type SetResult, setValues } from './edit-config.ts'
import { removeFromToml } from './remove-from-toml.ts'
import { saveConfig } from './save-config.ts'
import { writeValue } from './write-toml.ts'

/** The number of times a change starts again because another process saved the file. */
const ATTEMPTS_MAX = 10

export interface SetConfigOptions {
  /** Returns the text that receives the changes if the file does not exist. Default: an empty text. */
  newFile?(): string
  /** Called with the text that is about to be changed, and again after another process has saved the file. A rejection changes nothing. */
  check?(text: string): Promise<void>
}

/** Makes all of the changes or none. Resolves to one flag for each change: true when the value is a secret and was encrypted. */
export const setConfig = (
  source: ConfigSource,
  changes: readonly Change[],
  { newFile, check }: SetConfigOptions = {},
): Promise<SetResult['secrets']> =>
  undisturbed(async () => {
    const { options, save } = await openFile(source, newFile)
    await check?.(options.text)
    const { text, secrets } = await setValues({ ...options, changes })
    await save(text)
    return secrets
  })

/** Appends a table to a list of tables and sets further keys. Makes all of the changes or none. */
export const addToConfig = (source: ConfigSource, { list, entry, set = {} }: ConfigAddition): Promise<void> =>
  undisturbed(async () => {
    const { options, save } = await openFile(source)
    const tables = valueAt(await parseToml(withoutMark(options.text), options.file), list)
    const place = `${list}[${Array.isArray(tables) ? tables.length : 0}]`
    const added = Object.fromEntries(Object.entries(entry).map(([name, value]) => [`${place}.${name}`, value]))
    const changes = await changesTo({ ...set, ...added })
    await save((await setValues({ ...options, changes })).text)
  })

/** Sets keys by their paths; `undefined` removes a key or table. Makes all of the changes or none. */
export const setInConfig = async (source: ConfigSource, values: Readonly<Record<string, unknown>>): Promise<void> => {
  await setConfig(source, await changesTo(values))
}

const changesTo = (values: Readonly<Record<string, unknown>>): Promise<Change[]> =>
  Promise.all(
    Object.entries(values).map(async ([path, value]) => ({ path, value: value === undefined ? undefined : await writeValue(value) })),
  )

/** Encrypts a secret that the file holds in plain text. Resolves to whether the key is a secret and whether it was encrypted. */
export const encryptInConfig = (source: ConfigSource, key: string): Promise<'encrypted' | 'secret' | 'no secret'> =>
  undisturbed(async () => {
    const { options, save } = await openFile(source)
    const { secret, sealing } = await findPlainSecret(options, key)
    if (!sealing) return secret ? 'secret' : 'no secret'
    await save((await setValues({ ...options, changes: [sealing] })).text)
    return 'encrypted'
  })

/** Encrypts every secret that the file holds in plain text. Resolves to the dotted keys of these secrets. */
export const sealConfig = (source: ConfigSource): Promise<readonly string[]> =>
  undisturbed(async () => {
    const { options, save } = await openFile(source)
    const { plainSecrets } = await loadConfig(options)
    if (plainSecrets.length === 0) return plainSecrets
    const found = await Promise.all(plainSecrets.map((key) => findPlainSecret(options, key)))
    await save((await setValues({ ...options, changes: found.flatMap(({ sealing }) => sealing ?? []) })).text)
    return plainSecrets
  })

/**
 * Returns the text of the file without the secrets that it holds in plain text, and the dotted keys that are missing. Sections of
 * features that this build leaves out are removed as a whole, because their secrets are not known. Encrypted values stay. Throws
 * `config_invalid` as `readConfig` does.
 */
export async function withoutPlainSecrets(
  { configFile: file, dataDir, features, env }: ConfigSource,
  text: string,
): Promise<{ readonly text: string; readonly removed: readonly string[] }> {
  const box = openSecretBox(dataDir)
  const decrypt = (encrypted: string, aad: string): string => box.decrypt(encrypted, aad)
  await loadFeatures(features)
  const { plainSecrets, leftOut } = await loadConfig({ file, text, sections: sectionsOf(features), env, decrypt })
  const removed = [...new Set([...plainSecrets, ...leftOut.map(({ section }) => section)])]
  let kept = withoutMark(text)
  for (const key of removed) kept = await removeFromToml(kept, parseKeyPath(key))
  return { text: kept, removed }
}

/** Tells whether a key is a secret. Throws as `setConfig` does when the key does not exist. */
export async function isSecretKey(source: ConfigSource, key: string): Promise<boolean> {
  const { options } = await openFile(source)
  return (await findPlainSecret({ ...options, text: '' }, key)).secret
}

/** Runs `work` again when another process saved the file meanwhile. */
export async function undisturbed<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'conflict' || attempt === ATTEMPTS_MAX) throw error
    }
  }
}

/** Opens the file for a change: `save` throws `conflict` when another process has saved it since. */
export async function openFile(source: ConfigSource, newFile?: () => string) {
  if (source.configValues) throw new AppError('forbidden', 'The program that embeds Sluice holds the configuration: change it there')
  const { configFile: file, dataDir, features, env, shared } = source
  await loadFeatures(features)
  const before = shared && (await readNodeText(source, shared))
  const expected = before
    ? before.text
    : await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined
        throw error
      })
  const box = openSecretBox(dataDir)
  const options: Omit<SetOptions, 'changes'> & { readonly text: string } = {
    file,
    text: expected ?? newFile?.() ?? '',
    sections: sectionsOf(features),
    env,
    encrypt: (plain, aad) => box.encrypt(plain, aad),
    decrypt: (encrypted, aad) => box.decrypt(encrypted, aad),
  }
  const save = async (text: string): Promise<void> => {
    // Values were checked one by one; this finds keys that do not fit each other, such as a channel that names an unknown agent.
    await parseConfig(source, text)
    if (shared && before) return saveNodeText(source, shared, { before, text, by: hostname() })
    await saveConfig({ file, text, expected })
  }
  return { options, save, expected }
}
