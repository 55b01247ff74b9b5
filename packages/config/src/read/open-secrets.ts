/** Decrypts the secrets of a section and reports the secrets that the file holds in plain text. */
import { AppError } from '@sluice/sdk'
import { formatKeyPath, type KeyPath, schemaPath } from '../toml/key-path.ts'
import type { Finding } from '../toml/problem.ts'
import type { Key } from '../toml/schema-keys.ts'

/** The prefix of an encrypted value. */
export const ENCRYPTED = 'enc:'

/** Decrypts a text that was encrypted for this dotted path. Throws for any other text, with an `AppError` when the reason is known. */
export type Decrypt = (text: string, path: string) => string | Promise<string>

export interface OpenedSecrets {
  readonly value: unknown
  readonly findings: readonly Finding[]
  /** The dotted keys of secrets that the file holds in plain text. */
  readonly plain: readonly string[]
}

export interface SecretContext {
  /** The path of the section. */
  readonly path: KeyPath
  /** The dotted keys whose value does not come from the file. */
  readonly skip: ReadonlyMap<string, unknown>
  readonly decrypt: Decrypt
}

/** Returns new values and does not change the given ones. */
export async function openSecrets(values: object, top: Key, { path, skip, decrypt }: SecretContext): Promise<OpenedSecrets> {
  const findings: Finding[] = []
  const plain: string[] = []
  if (Object.keys(values).length === 0) return { value: values, findings, plain }

  const openText = async (text: string, at: KeyPath): Promise<string> => {
    const name = formatKeyPath(at)
    if (!text.startsWith(ENCRYPTED)) {
      if (text !== '') plain.push(name)
      return text
    }
    try {
      return await decrypt(text, schemaPath(at))
    } catch (error) {
      const why = error instanceof AppError ? error.message.replace(/\.$/, '') : `\`${name}\` cannot be decrypted`
      findings.push({ path: at, at: 'value', message: `${why}; \`sluice config set ${name}\` sets it again` })
      return text
    }
  }

  const open = async (given: unknown, { shape, metadata }: Key, at: KeyPath): Promise<unknown> => {
    if (metadata.secret) return typeof given === 'string' && !skip.has(formatKeyPath(at)) ? openText(given, at) : given
    if (shape.kind === 'list' && Array.isArray(given)) {
      return Promise.all(given.map((item, index) => open(item, shape.item, [...at, index])))
    }
    if (shape.kind !== 'table' || typeof given !== 'object' || given === null) return given
    const entries = Object.entries(given).map(async ([name, child]) => {
      const inner = shape.keys.get(name) ?? shape.rest
      return [name, inner ? await open(child, inner, [...at, name]) : child] as const
    })
    return Object.fromEntries(await Promise.all(entries))
  }

  return { value: await open(values, top, path), findings, plain }
}
