/** Keys of earlier releases. For one minor release they still load, with a warning; see docs/compatibility.md. */
import { followPath, formatKeyPath, type KeyPath, type KeyStep, parseKeyPath } from '../toml/key-path.ts'
import { isTable } from '../toml/unknown-keys.ts'

export interface FormerKey {
  /** The dotted path of a key or a whole section, such as `agents.*.model`; `*` matches every name and every entry of a list. */
  readonly key: string
  /** The release that renamed or removed it. The next minor release deletes this row, and then refuses the key. */
  readonly since: string
  /** The path that replaces it, with the same `*`. Absent for a removed key, whose value has no effect. */
  readonly becomes?: string
  /** What users of a removed key have to know, as a sentence without its full stop. */
  readonly reason?: string
}

/** The former keys of this release. */
export const FORMER_KEYS: readonly FormerKey[] = []

export interface CarriedOver {
  /** The content of the file under the present keys. */
  readonly data: Readonly<Record<string, unknown>>
  readonly warnings: readonly string[]
  /** Returns where the file has a value that was carried over to this path; undefined for any other value. */
  origin(path: KeyPath): KeyPath | undefined
  /** Returns the path to which the secret at this path is bound, both without indexes of lists: the path in the file. */
  secretPath(path: string): string
}

interface Move {
  readonly from: KeyPath
  readonly to: KeyPath
}

/** Moves the values of former keys. A present key that the file has, too, wins. */
export function carryOver(file: Readonly<Record<string, unknown>>, formerKeys: readonly FormerKey[]): CarriedOver {
  let data = file
  const warnings: string[] = []
  const moves: Move[] = []
  for (const former of formerKeys) {
    for (const { path, names } of matches(file, stepsOf(former.key))) {
      const value = followPath(data, path)
      data = changed(data, path, undefined) as typeof data
      const to = former.becomes === undefined ? undefined : filled(stepsOf(former.becomes), names)
      warnings.push(warningOf(former, path, to && { to, isSet: followPath(file, to) !== undefined }))
      if (to === undefined || followPath(file, to) !== undefined) continue
      data = changed(data, to, value) as typeof data
      moves.push({ from: path, to })
    }
  }
  const secretMoves = moves.map(({ from, to }) => ({ from: from.filter(isName), to: to.filter(isName) }))
  return {
    data,
    warnings,
    origin: (path) => movedBack(path, moves),
    secretPath(path) {
      const from = secretMoves.length > 0 ? movedBack(parseKeyPath(path), secretMoves) : undefined
      return from ? formatKeyPath(from) : path
    },
  }
}

const isName = (step: KeyStep): boolean => typeof step === 'string'

function movedBack(path: KeyPath, moves: readonly Move[]): KeyPath | undefined {
  const move = moves.find(({ to }) => to.every((step, index) => path[index] === step))
  return move && [...move.from, ...path.slice(move.to.length)]
}

/** Returns what to do about a former key that a caller wants to read or set; undefined for any other name. */
export function formerKeyHint(path: KeyPath, formerKeys: readonly FormerKey[] = FORMER_KEYS): string | undefined {
  for (const former of formerKeys) {
    const steps = stepsOf(former.key)
    if (steps.length > path.length || !steps.every((step, index) => step === ANY || step === path[index])) continue
    const names = path.filter((_, index) => steps[index] === ANY)
    const to = former.becomes === undefined ? undefined : [...filled(stepsOf(former.becomes), names), ...path.slice(steps.length)]
    return warningOf(former, path, to && { to, isSet: false })
  }
  return undefined
}

function warningOf({ since, reason }: FormerKey, path: KeyPath, present: { to: KeyPath; isSet: boolean } | undefined): string {
  const key = `\`${formatKeyPath(path)}\``
  if (!present)
    return `${key} has no effect since ${since}${reason === undefined ? '' : `: ${reason}`}. Delete it, because a later release refuses it`
  const to = `\`${formatKeyPath(present.to)}\``
  if (present.isSet) return `${key} is ignored, because ${to} has replaced it since ${since} and is set, too. Delete it`
  return `${key} is called ${to} since ${since}. Rename it, because a later release refuses it`
}

const ANY = '*'

const stepsOf = (pattern: string): KeyPath => pattern.split('.').flatMap((step) => (step === ANY ? [ANY] : parseKeyPath(step)))

/** Replaces each `*` by the name that it stood for. */
function filled(pattern: KeyPath, names: readonly KeyStep[]): KeyPath {
  const left = [...names]
  return pattern.map((step) => (step === ANY ? (left.shift() ?? step) : step))
}

interface Match {
  readonly path: KeyPath
  /** The steps that `*` stood for. */
  readonly names: readonly KeyStep[]
}

/** Returns the paths in the file that a pattern matches. */
function matches(node: unknown, pattern: KeyPath, found: Match = { path: [], names: [] }): Match[] {
  const [step, ...rest] = pattern
  if (step === undefined) return [found]
  const steps = step !== ANY ? [step] : Array.isArray(node) ? [...node.keys()] : isTable(node) ? Object.keys(node) : []
  return steps.flatMap((one) => {
    const below = followPath(node, [one])
    const names = step === ANY ? [...found.names, one] : found.names
    return below === undefined ? [] : matches(below, rest, { path: [...found.path, one], names })
  })
}

/** Returns a copy with this value, or without the key if `value` is undefined. Anything but a table stays, and is refused later. */
function changed(node: unknown, path: KeyPath, value: unknown): unknown {
  const [step, ...rest] = path
  if (step === undefined) return value
  if (Array.isArray(node)) return node.map((entry, index) => (index === step ? changed(entry, rest, value) : entry))
  if (node !== undefined && !isTable(node)) return node
  const { [step]: below, ...others } = (node ?? {}) as Readonly<Record<KeyStep, unknown>>
  return rest.length === 0 && value === undefined ? others : { ...others, [step]: changed(below, rest, value) }
}
