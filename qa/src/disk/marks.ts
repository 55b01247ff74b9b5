/** The child's marks: lines in a file, each written after the fact it states is true. */

/** `wrong` states a broken rule that the child itself found; its subject is a sentence. */
const KINDS = ['kept', 'refused', 'started', 'finished', 'sending', 'sent', 'fired', 'decided', 'wrong'] as const

/** The kinds of facts that the child states. */
export type MarkKind = (typeof KINDS)[number]

/** The subjects of each kind: the number of an arrival or, for a refusal, a description. */
export type Marks = Readonly<Record<MarkKind, ReadonlySet<string>>>

/** The line of a mark. */
export const markOf = (kind: MarkKind, subject: number | string): string => `${kind} ${subject}\n`

/** Parses the complete lines; throws for an unknown kind. */
export function parseMarks(text: string): Marks {
  const marks = Object.fromEntries(KINDS.map((kind) => [kind, new Set<string>()])) as Record<MarkKind, Set<string>>
  for (const line of text.split('\n').slice(0, -1)) {
    const kind = KINDS.find((name) => line.startsWith(`${name} `))
    if (!kind) throw new Error(`invalid mark: ${line}`)
    marks[kind].add(line.slice(kind.length + 1))
  }
  return marks
}
