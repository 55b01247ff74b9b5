/** The report of a node of a cluster about its folders and programs, so that any node can compare those of all nodes. */
import * as v from 'valibot'

const markSchema = v.object({
  /** A random id of the process that wrote the mark. */
  id: v.string(),
  /** How often that process had written the mark. */
  count: v.number(),
})

const folderSchema = v.object({
  /** The same on all nodes, such as `workspace`. */
  name: v.string(),
  /** Absolute. */
  path: v.string(),
  /** What the node wrote into the folder last; null for a folder that is compared by its content, and where it could not write. */
  mark: v.nullable(markSchema),
  /** The marks of other nodes that it found in the folder, by the name of the node; null where it could not look for them. */
  seen: v.nullable(v.record(v.string(), markSchema)),
  /** The SHA-256 of the content, in hexadecimal; null for a folder that is compared by marks, and where it could not be read. */
  digest: v.nullable(v.string()),
  /** False where the node cannot reach the folder. */
  isUsable: v.boolean(),
  /** Why the node cannot reach the folder, write to it, or compare it; null when it can. */
  problem: v.nullable(v.string()),
})

const programSchema = v.object({
  /** The name of the MCP server. */
  server: v.string(),
  /** The number of its processes on the node; 0 while nobody uses it. */
  processes: v.number(),
})

const nodeReportSchema = v.object({ folders: v.array(folderSchema), programs: v.array(programSchema) })

export type FolderMark = v.InferOutput<typeof markSchema>
export type NodeFolder = v.InferOutput<typeof folderSchema>
export type NodeProgram = v.InferOutput<typeof programSchema>
export type NodeReport = v.InferOutput<typeof nodeReportSchema>

/** Returns null where there is none, and for one that another release wrote in another form. */
export function parseNodeReport(json: string | null): NodeReport | null {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), nodeReportSchema), json)
  return parsed.success ? parsed.output : null
}
