// The test set-up of the whole workspace: every package is a project, found by glob so that none is forgotten.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    projects: ['packages/*'],
    testTimeout: 20_000,
  },
})
