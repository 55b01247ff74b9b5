/** Lets the model read, write and list files of the workspace. */
import { defineFeature } from '@sluice/sdk'
import { fileList, fileRead, fileWrite } from './file-tools.ts'

export default defineFeature({
  id: 'tool-files',
  build: (host) => ({ tools: [fileRead(host), fileWrite, fileList] }),
})
