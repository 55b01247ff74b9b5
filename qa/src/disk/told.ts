/** What the child says of itself, a line each: to the file of marks, once it is true. */

/** `wrong` is a rule that the child itself saw broken; its subject is a sentence. */
const KINDS = ['kept', 'refused', 'started', 'finished', 'sending', 'sent', 'fired', 'decided', 'wrong'] as const

export type Kind = (typeof KINDS)[number]

/** Of each kind the subjects: the number of an arrival, for what is refused also other words. */
export type Told = Readonly<Record<Kind, ReadonlySet<string>>>

export const markOf = (kind: Kind, subject: number | string): string => `${kind} ${subject}\n`

export function parseMarks(text: string): Told {
  const told = Object.fromEntries(KINDS.map((kind) => [kind, new Set<string>()])) as Record<Kind, Set<string>>
  for (const line of text.split('\n').slice(0, -1)) {
    const kind = KINDS.find((name) => line.startsWith(`${name} `))
    if (!kind) throw new Error(`not a mark: ${line}`)
    told[kind].add(line.slice(kind.length + 1))
  }
  return told
}
