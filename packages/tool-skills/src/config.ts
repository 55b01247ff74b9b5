/** The configuration section `[skills]`. */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import * as v from 'valibot'

export const skillsSection = {
  path: 'skills',
  schema: v.object({
    enabled: v.optional(v.pipe(v.boolean(), v.description('Whether the agent can use skills')), true),
    skills_dir: v.optional(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.description('The folder that holds a folder for each skill; a relative path starts at the data directory'),
      ),
      'skills',
    ),
  }),
} as const

export type SkillsConfig = v.InferOutput<typeof skillsSection.schema>

/** Returns the absolute path of the folder of skills. */
export function skillsFolder({ skills_dir }: Pick<SkillsConfig, 'skills_dir'>, dataDir: string): string {
  const path = skills_dir === '~' || skills_dir.startsWith('~/') ? join(homedir(), skills_dir.slice(1)) : skills_dir
  return resolve(dataDir, path)
}
