/** Skills: folders of instructions and scripts that the agent reads when a task needs them. See `docs/skills.md`. */
import { defineFeature } from '@sluice/sdk'
import { skillCommands } from './commands.ts'
import { skillsFolder, skillsSection } from './config.ts'
import { SkillLibrary } from './skill-library.ts'
import { skillRead } from './skill-read.ts'
import { skillRoutes } from './skill-routes.ts'

export default defineFeature({
  id: 'tool-skills',
  section: skillsSection,
  build(host, config) {
    const library = new SkillLibrary(host, skillsFolder(config, host.dataDir))
    const commands = skillCommands(host, library)
    if (!config.enabled) return { commands, disabledReason: '[skills] enabled is false' }
    return {
      commands,
      routes: skillRoutes(host, library),
      services: { skillFolders: () => library.skills.map(({ folder }) => folder) },
      get tools() {
        return [skillRead(library)]
      },
      check: async () =>
        library.problems.map(({ file, line, message, severity }) => ({
          status: severity === 'error' ? ('fail' as const) : ('warn' as const),
          detail: `${file}${line === undefined ? '' : `:${line}`}: ${message}`,
          fix: 'correct the file, or remove its folder',
        })),
      register: (signal) => library.start(signal),
      close: () => library.close(),
    }
  },
})
