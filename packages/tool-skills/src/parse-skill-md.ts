/** Reads the front matter of a `SKILL.md` by the Agent Skills format (https://agentskills.io/specification). */
import * as v from 'valibot'
import { LineCounter, parseDocument } from 'yaml'

export const NAME_CHARS_MAX = 64
export const DESCRIPTION_CHARS_MAX = 1024
const FRONT_MATTER = '---'

/** A problem of one file. An error keeps the skill from being used. */
export interface SkillProblem {
  readonly file: string
  /** Counts from 1. Absent when the problem has no place in the file. */
  readonly line?: number
  readonly message: string
  readonly severity: 'error' | 'warning'
}

/** The front matter of a skill. */
export interface FrontMatter {
  readonly name: string
  readonly description: string
  readonly license?: string
  readonly compatibility?: string
  /** The tools that the author suggests, separated by spaces. They grant nothing: the policy decides about each call. */
  readonly allowedTools?: string
}

export interface ParsedSkill {
  /** Absent when there is an error. */
  readonly skill?: FrontMatter
  readonly problems: readonly Omit<SkillProblem, 'file'>[]
}

/** The names of the format. Other agents accept more, so a skill with another name is used with a warning. */
const FORMAT_NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/

const scalar = v.pipe(v.union([v.string(), v.number(), v.boolean()]), v.transform(String))
const tools = v.pipe(
  v.union([scalar, v.array(scalar)]),
  v.transform((given) => (typeof given === 'string' ? given : given.join(' '))),
)
const fields = v.object({
  name: v.pipe(
    v.string('must be a string'),
    v.maxLength(NAME_CHARS_MAX, `must have at most ${NAME_CHARS_MAX} characters`),
    v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must consist of lower-case letters, digits and hyphens'),
  ),
  description: v.pipe(v.string('must be a string'), v.trim(), v.minLength(1, 'must not be empty')),
  license: v.optional(scalar),
  compatibility: v.optional(scalar),
  'allowed-tools': v.optional(tools),
})

/** `folder` is the name of the skill's folder, which the name of the skill should equal. Never throws. */
export function parseSkillMd(text: string, folder: string): ParsedSkill {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/)
  const end = lines[0]?.trimEnd() === FRONT_MATTER ? lines.findIndex((line, index) => index > 0 && line.trimEnd() === FRONT_MATTER) : -1
  if (end < 0) return failed(1, "the file must begin with front matter: a line '---', the fields name and description, and a line '---'")
  const given = lines.slice(1, end)
  const strict = readYaml(given)
  // Other agents accept a colon in a plain text, as in "description: Use when: …", which YAML does not.
  const read = 'message' in strict ? readYaml(given.map(quoted)) : strict
  if ('message' in read) return failed((strict as YamlError).line + 1, (strict as YamlError).message)
  const isMapping = typeof read.value === 'object' && read.value !== null && !Array.isArray(read.value)
  const result = v.safeParse(fields, isMapping ? { name: folder, ...read.value } : read.value)
  const lineOf = (key: string) => Math.max(given.findIndex((line) => line.startsWith(`${key}:`)) + 2, 1)
  if (!result.success) {
    const problems = result.issues.map((issue) => {
      const key = String(issue.path?.[0]?.key ?? '')
      if (key === '') return { line: 1, message: 'the front matter must have the fields name and description', severity: 'error' as const }
      const message = given.some((line) => line.startsWith(`${key}:`)) ? issue.message : 'is missing'
      return { line: lineOf(key), message: `${key} ${message}`, severity: 'error' as const }
    })
    return { problems }
  }
  const { 'allowed-tools': allowedTools, license, compatibility, name, description } = result.output
  const warnings = [
    ...('message' in strict ? [{ line: strict.line + 1, message: `${strict.message}; put the value in quotation marks` }] : []),
    ...(FORMAT_NAME.test(name) ? [] : [{ line: lineOf('name'), message: `name '${name}' has other characters than the format allows` }]),
    ...(name === folder ? [] : [{ line: lineOf('name'), message: `name is '${name}', but the folder is '${folder}'` }]),
    ...(description.length > DESCRIPTION_CHARS_MAX
      ? [
          {
            line: lineOf('description'),
            message: `description has ${description.length} characters; the model sees ${DESCRIPTION_CHARS_MAX}`,
          },
        ]
      : []),
  ]
  return {
    skill: {
      name,
      description,
      ...(license !== undefined && { license }),
      ...(compatibility !== undefined && { compatibility }),
      ...(allowedTools !== undefined && { allowedTools }),
    },
    problems: warnings.map((warning) => ({ ...warning, severity: 'warning' as const })),
  }
}

interface YamlError {
  /** The line within the front matter, from 1. */
  readonly line: number
  readonly message: string
}

function readYaml(lines: readonly string[]): { readonly value: unknown } | YamlError {
  const lineCounter = new LineCounter()
  const document = parseDocument(lines.join('\n'), { lineCounter, prettyErrors: false })
  const [error] = document.errors
  if (error) return { line: lineCounter.linePos(error.pos[0]).line, message: firstLine(error.message) }
  try {
    return { value: document.toJS({ maxAliasCount: 10 }) }
  } catch (error) {
    return { line: 1, message: firstLine(error instanceof Error ? error.message : String(error)) }
  }
}

/** Quotes the plain value of a top-level field. */
function quoted(line: string): string {
  const [, key = '', rest = ''] = /^([a-z][a-z-]*):( .*)$/.exec(line) ?? []
  const value = rest.trim()
  return value === '' || /^["'|>&*!#]/.test(value) ? line : `${key}: ${JSON.stringify(value)}`
}

const firstLine = (text: string): string => text.split('\n')[0]?.replace(/[.:]$/, '') ?? ''

const failed = (line: number, message: string): ParsedSkill => ({ problems: [{ line, message, severity: 'error' }] })
