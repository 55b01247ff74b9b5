/** Turns an issue of a schema into a sentence: the expected value, and the value of the file unless it may be a secret. */
import type * as v from 'valibot'
import { describeKey, describeKind, describeValue } from './describe-key.ts'
import { hasSecret } from './has-secret.ts'
import { formatKeyPath, type KeyPath, type KeyStep } from './key-path.ts'
import type { Finding } from './problem.ts'
import { childKey, type Key, readKey } from './schema-keys.ts'

/** The beginning of valibot's own messages, which quote the value. Messages of our schemas begin differently. */
const BUILT_IN = /^Invalid |^Expected /

/** Tells whether the issue is a missing required key. */
export const isMissing = (issue: v.BaseIssue<unknown>): boolean => issue.kind === 'schema' && issue.input === undefined

/** Tells whether the issue is a key that only another alternative of the schema has. */
const isStranger = ({ type, expected }: v.BaseIssue<unknown>): boolean => type === 'strict_object' && expected === 'never'

/** `top` describes the table at `section`; `variables` names the environment behind a key. */
export function explainIssue(
  issue: v.BaseIssue<unknown>,
  { top, section, variables }: { readonly top: Key; readonly section: KeyPath; readonly variables?: ReadonlyMap<string, string> },
): Finding {
  const steps = (issue.path ?? []).map(({ key }) => (typeof key === 'number' ? key : String(key)))
  const path = [...section, ...steps]
  const { key, open } = follow(top, steps)
  const name = formatKeyPath(path)
  if (isMissing(issue)) return { path, at: 'value', message: missing(`\`${name}\``, key) }
  if (isStranger(issue)) return { path, at: 'name', message: `\`${name}\` is not allowed here` }
  const variable = path.map((_, index) => variables?.get(formatKeyPath(path.slice(0, index + 1)))).find(Boolean)
  const wanted = BUILT_IN.test(issue.message) ? undefined : issue.message
  if (variable && wanted) return { path, at: 'nowhere', message: `the environment variable ${variable} (for \`${name}\`): ${wanted}` }
  if (variable && key) return { path, at: 'nowhere', message: wrongVariable(variable, path, key, String(issue.input)) }
  if (wanted) return { path, at: 'value', message: `\`${name}\`: ${wanted}` }
  const found = key?.metadata.secret
    ? 'something else'
    : mayShow(issue.input, key, open)
      ? describeValue(issue.input)
      : describeKind(issue.input)
  return { path, at: 'value', message: `\`${name}\` must be ${key ? describeKey(key) : 'something else'}; got ${found}` }
}

/** Describes an issue with data of a caller, without the value, which may be anything. */
export function expectation(issue: v.BaseIssue<unknown>, schema: object): string {
  const steps = (issue.path ?? []).map(({ key }) => (typeof key === 'number' ? key : String(key)))
  const { key } = follow(readKey(schema), steps)
  const name = steps.length === 0 ? 'it' : `\`${formatKeyPath(steps)}\``
  if (isMissing(issue)) return missing(name, key)
  if (isStranger(issue)) return `${name} is not allowed here`
  if (!BUILT_IN.test(issue.message)) return `${name}: ${issue.message}`
  return `${name} must be ${key ? describeKey(key) : 'something else'}`
}

export const wrongVariable = (variable: string, path: KeyPath, key: Key, text: string): string => {
  const found = key.metadata.secret ? '' : `, but it is ${describeValue(text)}`
  return `the environment variable ${variable} (for \`${formatKeyPath(path)}\`) must be ${describeKey(key)}${found}`
}

const missing = (name: string, key: Key | undefined): string => {
  const variables = key?.metadata.env?.length ? `, and may come from the environment as ${key.metadata.env.join(' or ')}` : ''
  return `${name} is missing${key ? `; it must be ${describeKey(key)}` : ''}${variables}`
}

/** Tells whether a problem may quote the value. In place of a table or list, or under a name that the file chose, a text may be a credential. */
function mayShow(value: unknown, key: Key | undefined, isOpen: boolean): boolean {
  if (!key || key.shape.kind === 'table' || key.shape.kind === 'list' || hasSecret(key)) return false
  return !isOpen || (key.shape.kind === 'number' && typeof value === 'number')
}

/** Returns the key at the end of the steps, and whether the file chose its name, so that its value may be a credential. */
function follow(top: Key, steps: readonly KeyStep[]): { readonly key: Key | undefined; readonly open: boolean } {
  let key: Key | undefined = top
  let open = false
  for (const step of steps) {
    open ||= key?.shape.kind === 'table' && typeof step === 'string' && !key.shape.keys.has(step)
    key = key && childKey(key, step)
  }
  return { key, open }
}
