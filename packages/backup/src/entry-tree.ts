/** Judges the paths and links of a backup together: which of them can be unpacked into a data directory without leaving it. */
import { CONFIG_FILE, isOfThisMachine } from './contents.ts'
import { MANIFEST_FILE, MANIFEST_HASH_FILE } from './manifest.ts'

export type EntryType = 'file' | 'directory' | 'symlink'

/** A target that needs more steps is a cycle. */
const LINK_STEPS_MAX = 40
/** Files that the daemon opens by name at the top of the data directory, and would follow a link of. */
const NEVER_LINKS: readonly (string | RegExp)[] = [CONFIG_FILE, MANIFEST_FILE, MANIFEST_HASH_FILE, /^sluice\.db/, /^secret\.key/]

export class EntryTree {
  readonly #foldsCase: boolean
  /** The entries by path. A folder that only the path of another entry names is `implied`. */
  readonly #types = new Map<string, EntryType | 'implied'>()
  /** The first entry of each path, without the difference of upper and lower case. */
  readonly #folded = new Map<string, string>()
  readonly #targets = new Map<string, string>()

  /** `foldsCase`: names that differ only in case are one file on this system. */
  constructor(foldsCase = process.platform !== 'linux') {
    this.#foldsCase = foldsCase
  }

  /** The targets of all links by path. */
  get links(): ReadonlyMap<string, string> {
    return this.#targets
  }

  /** Returns why an entry cannot be unpacked next to the earlier ones; undefined if it can, and it is then part of the tree. */
  add(path: string, type: EntryType, target = ''): string | undefined {
    const names = path.split('/')
    const top = names[0] ?? ''
    if (!isPlain(path)) return `it has an entry with the path ${JSON.stringify(path)}`
    if (isOfThisMachine(top.toLowerCase())) return `it has ${top}, which belongs to one machine`
    const parents = names.slice(1).map((_, index) => names.slice(0, index + 1).join('/'))
    for (const parent of parents) {
      const known = this.#types.get(parent)
      if (known === 'file' || known === 'symlink') return `${path} is below ${parent}, which is a ${shown(known)}`
      const twin = this.#twinOf(parent, 'implied')
      if (twin !== undefined) return twin
    }
    const known = this.#types.get(path)
    if (known !== undefined && !(known === 'implied' && type === 'directory')) return `it has two entries of the name ${path}`
    const twin = this.#twinOf(path, type)
    if (twin !== undefined) return twin
    if (type === 'symlink' && target === '') return `the link ${path} has no target`
    if (
      type === 'symlink' &&
      names.length === 1 &&
      NEVER_LINKS.some((one) => (typeof one === 'string' ? one === fold(top) : one.test(fold(top))))
    )
      return `${path} is a link`
    for (const parent of parents) this.#put(parent, this.#types.get(parent) ?? 'implied')
    this.#put(path, type)
    if (type === 'symlink') this.#targets.set(path, target)
    return undefined
  }

  /** Lists the links that lead out of the data directory, also through other links. Call it after the last entry was added. */
  outsideLinks(): readonly string[] {
    return [...this.#targets.keys()].filter((path) => !this.#staysInside(path))
  }

  #put(path: string, type: EntryType | 'implied'): void {
    this.#types.set(path, type)
    if (!this.#folded.has(fold(path))) this.#folded.set(fold(path), path)
  }

  /** Two names that differ only in case are one on some systems: a file of one would be written through a link of the other. */
  #twinOf(path: string, type: EntryType | 'implied'): string | undefined {
    const other = this.#folded.get(fold(path))
    if (other === undefined || other === path) return undefined
    const isFolder = (one: string | undefined): boolean => one === 'directory' || one === 'implied'
    const first = this.#types.get(other)
    const isAllowed = !this.#foldsCase && path.includes('/') && (isFolder(first) ? isFolder(type) : first === 'file' && type === 'file')
    return isAllowed ? undefined : `the names ${other} and ${path} differ only in case`
  }

  /** Follows a link name by name, as the system does: `..` after a link leads to the parent of the target of the link. */
  #staysInside(link: string): boolean {
    const at = link.split('/').slice(0, -1)
    const rest = [link.split('/').at(-1) ?? '']
    for (let steps = 0; rest.length > 0; ) {
      const name = rest.shift() ?? ''
      if (name === '' || name === '.') continue
      if (name === '..') {
        if (at.pop() === undefined) return false
        continue
      }
      // These stay as they are on this machine, where they may be links.
      if (at.length === 0 && isOfThisMachine(name.toLowerCase())) return false
      at.push(name)
      const target = this.#targets.get(this.#folded.get(fold(at.join('/'))) ?? '')
      if (target === undefined) continue
      if (/^[\\/]|^[a-z]:|\\|\0/i.test(target)) return false
      // No file is reached through a cycle.
      if (++steps > LINK_STEPS_MAX) return true
      at.pop()
      rest.unshift(...target.split('/'))
    }
    return true
  }
}

const fold = (path: string): string => path.normalize('NFC').toUpperCase().toLowerCase()

const shown = (type: 'file' | 'symlink'): string => (type === 'symlink' ? 'link' : 'file')

/** A relative path of plain names. Windows has further characters that lead to streams, devices or other names. */
function isPlain(path: string): boolean {
  if (path === '' || path.includes('\0') || path.includes('\\')) return false
  const isOdd = (name: string): boolean => process.platform === 'win32' && /[:*?"<>|]|[. ]$/.test(name)
  return path.split('/').every((name) => !['', '.', '..'].includes(name) && !isOdd(name))
}
