/** Lets the model read, change, list and search files of the workspace. */
import { defineFeature } from '@sluice/sdk'
import { fileEdit } from './file-edit.ts'
import { fileList, fileRead, fileWrite } from './file-tools.ts'
import { searchTools } from './search-tools.ts'

export default defineFeature({
  id: 'tool-files',
  build: (host) => ({ tools: [fileRead(host), fileWrite, fileEdit(), fileList, ...searchTools(host)] }),
})
