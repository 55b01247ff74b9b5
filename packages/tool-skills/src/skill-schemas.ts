/** The schemas of the answers of `/api/skills`. */
import * as v from 'valibot'

const problemSchema = v.object({
  file: v.string(),
  line: v.optional(v.number()),
  message: v.string(),
  severity: v.picklist(['error', 'warning']),
})

const fileSchema = v.object({
  path: v.string(),
  bytes: v.number(),
  executable: v.boolean(),
  text: v.pipe(v.nullable(v.string()), v.description('Null for a file that is not UTF-8, or whose text is longer than 65,536 bytes')),
})
const contentEntries = {
  hash: v.pipe(v.nullable(v.string()), v.description('Identifies the content, for its acceptance; null when it cannot be read')),
  files: v.array(fileSchema),
}

const skillSchema = v.object({
  name: v.string(),
  description: v.string(),
  folder: v.string(),
  license: v.nullable(v.string()),
  compatibility: v.nullable(v.string()),
  allowed_tools: v.pipe(v.nullable(v.string()), v.description('A suggestion of the author; the policy decides about each call')),
})

const proposalSchema = v.object({
  name: v.string(),
  folder: v.string(),
  replaces: v.pipe(v.boolean(), v.description('True: it changes an installed skill')),
  description: v.nullable(v.string()),
  problems: v.array(problemSchema),
  ...contentEntries,
})

export const listSchema = v.object({
  folder: v.string(),
  skills: v.array(skillSchema),
  problems: v.array(problemSchema),
  waiting: v.pipe(v.array(proposalSchema), v.description('Skills that agents have written to their workspaces')),
})
export type SkillsPage = v.InferOutput<typeof listSchema>

export const oneSchema = v.object({ ...skillSchema.entries, ...contentEntries })
export type SkillWithFiles = v.InferOutput<typeof oneSchema>
