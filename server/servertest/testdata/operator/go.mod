module example.com/operator

go 1.26.0

require github.com/plinth-io/plinth v0.0.0

replace github.com/plinth-io/plinth => ../../../..
