module polyglot

go 1.19

require example.com/petal/go v0.0.0

replace example.com/petal/go => ../../go
